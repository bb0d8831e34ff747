// SPDX-License-Identifier: Apache-2.0

package topology

import (
	"fmt"

	"homenode/internal/machine"
	"homenode/internal/render"
)

// tag is a device's small sign: its kind in colour and letters, and its name.
type tag struct {
	kind, class, name string
	x, y, w           float64
}

// kinds are short enough for a sign.
var kinds = map[machine.DeviceClass]string{
	machine.Network: "NET", machine.Storage: "DISK", machine.GPU: "GPU", machine.Accelerator: "ACC", machine.CXLMemory: "CXL",
}

// tags places devices in rows of a width; those that are too many become one.
func tags(devices []machine.Device, width float64) []tag {
	var list []tag
	x, y := 0.0, 0.0
	for i, d := range devices {
		t := tag{kind: kinds[d.Class], class: string(d.Class), name: deviceName(d)}
		if t.kind == "" {
			t.kind, t.class = "DEV", "storage"
		}
		if i == maxTags && len(devices) > maxTags+1 {
			t = tag{kind: "…", class: "storage", name: fmt.Sprintf("%d more", len(devices)-i)}
		}
		head := kindWidth(t.kind)
		t.name = render.FitText(t.name, 11, width-head-12)
		t.w = head + render.TextWidth(t.name, 11) + 12
		if x > 0 && x+t.w > width {
			x, y = 0, y+tagHeight+4
		}
		t.x, t.y = x, y
		x += t.w + 6
		list = append(list, t)
		if t.kind == "…" {
			break
		}
	}
	return list
}

func kindWidth(kind string) float64 { return render.TextWidth(kind, 10)*1.15 + 10 }

func tagRows(devices []machine.Device, width float64) float64 {
	list := tags(devices, width)
	if len(list) == 0 {
		return 0
	}
	return list[len(list)-1].y/(tagHeight+4) + 1
}

func drawTags(c *canvas, devices []machine.Device, x, y, width float64) {
	for _, t := range tags(devices, width) {
		t.draw(c, x, y)
	}
}

func (t tag) draw(c *canvas, x, y float64) {
	x, y = x+t.x, y+t.y
	head := kindWidth(t.kind)
	c.Rect(x, y, t.w, tagHeight, "box", 3)
	c.Rect(x, y, head, tagHeight, t.class, 3)
	c.middle(x+head/2, y+12.5, "mark", t.kind)
	c.text(x+head+6, y+13, "tag", t.name)
}
