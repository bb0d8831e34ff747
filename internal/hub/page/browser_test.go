// SPDX-License-Identifier: Apache-2.0

package page

import (
	"context"
	"fmt"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// browser is Chromium with a page open. It collects what must not happen.
type browser struct {
	*testing.T
	ctx  context.Context
	base string
	mu   sync.Mutex
	bad  []string
	sent int
}

// newBrowser starts Debian's Chromium. The test takes some 10 s, so it is for 'make test-full'.
func newBrowser(t *testing.T, base string) *browser {
	t.Helper()
	if os.Getenv("HOMENODE_BROWSER") == "" {
		t.Skip("HOMENODE_BROWSER is not set: the test starts Chromium, which 'make test-full' does")
	}
	path, err := exec.LookPath("chromium")
	if err != nil {
		t.Skip("chromium is not installed: apt-get install chromium")
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.WindowSize(1280, 900),
		chromedp.Flag("disable-features", "site-per-process,Translate,BlinkGenPropertyTrees,BackForwardCache")) // chromedp waits for ever for a page from that cache
	all, stop := chromedp.NewExecAllocator(t.Context(), options...)
	t.Cleanup(stop)
	ctx, end := chromedp.NewContext(all)
	t.Cleanup(end)
	b := &browser{T: t, ctx: ctx, base: base}
	if err := chromedp.Run(ctx); err != nil { // the browser ends with the context of its first action
		t.Fatal(err)
	}
	chromedp.ListenTarget(ctx, b.listen)
	b.do(network.Enable(), log.Enable(), runtime.Enable())
	return b
}

func (b *browser) listen(event any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch e := event.(type) {
	case *network.EventRequestWillBeSent:
		if b.sent++; !strings.HasPrefix(e.Request.URL, b.base) {
			b.bad = append(b.bad, "request to "+e.Request.URL)
		}
	case *log.EventEntryAdded:
		if e.Entry.URL != b.base+"/favicon.ico" {
			b.bad = append(b.bad, "log: "+e.Entry.Text)
		}
	case *runtime.EventConsoleAPICalled:
		b.bad = append(b.bad, "console: "+string(e.Type))
	case *runtime.EventExceptionThrown:
		b.bad = append(b.bad, "exception: "+e.ExceptionDetails.Text)
	}
}

func (b *browser) do(actions ...chromedp.Action) {
	b.Helper()
	ctx, stop := context.WithTimeout(b.ctx, 2*time.Minute)
	defer stop()
	if err := chromedp.Run(ctx, actions...); err != nil {
		b.Fatal(err)
	}
}

func (b *browser) open(target string) {
	b.Helper()
	b.do(chromedp.Navigate(b.base+target), chromedp.WaitReady("footer"))
}

// eval is what an expression is in the page.
func eval[T any](b *browser, expression string) (v T) {
	b.Helper()
	b.do(chromedp.Evaluate(expression, &v))
	return v
}

func (b *browser) want(what, expression, want string) {
	b.Helper()
	if got := eval[string](b, expression); got != want {
		b.Errorf("%s: %q, want %q", what, got, want)
	}
}

const firstRow = `document.querySelector("tbody th").innerText.trim()`

func serve(t *testing.T) string {
	s := httptest.NewServer(handlerOf(fleet(200, 20)))
	t.Cleanup(s.Close)
	return s.URL
}

// A person sorts, filters, follows a link, loads it again, goes back, and needs no mouse.
func TestBrowser(t *testing.T) {
	b := newBrowser(t, serve(t))
	b.open("/")
	b.want("title", "document.title", "Services · homenode")
	worst := eval[string](b, firstRow)
	follow := func(selector string) {
		t.Helper()
		b.do(chromedp.Click(selector, chromedp.ByQuery), chromedp.WaitReady("footer"))
	}
	follow(`thead a[href*="traffic_bytes"]`)
	b.want("sorted", `document.querySelector("[aria-sort]").innerText.trim()+" "+document.querySelector("[aria-sort]").ariaSort`, "traffic descending")
	most := eval[string](b, firstRow)
	follow(`thead a[href*="traffic_bytes"]`)
	b.want("sorted again", `document.querySelector("[aria-sort]").ariaSort`, "ascending")
	if least := eval[string](b, firstRow); most == least || most == worst {
		t.Errorf("sorting changes nothing: %q, %q, %q", worst, most, least)
	}
	here := eval[string](b, "location.href")
	before := eval[string](b, `document.querySelector("main").innerText`)
	b.do(chromedp.Reload(), chromedp.WaitReady("footer"))
	b.want("address after a reload", "location.href", here)
	b.want("page after a reload", `document.querySelector("main").innerText`, before)

	b.do(slash())
	b.want("focus after /", "document.activeElement.id", "q")
	b.do(chromedp.KeyEvent("search"+kb.Enter), chromedp.WaitReady("footer"), chromedp.Sleep(300*time.Millisecond))
	b.want("filtered", `[...document.querySelectorAll("tbody th")].map(e=>e.innerText.trim()).sort().join()`, "search-frontend,search-index")
	if at := eval[string](b, "location.search"); !strings.Contains(at, "q=search") || !strings.Contains(at, "sort=") {
		t.Errorf("the address lost its state: %s", at)
	}
	follow("tbody th a")
	b.want("service", `document.querySelectorAll("svg[role=img]").length+" "+(document.querySelectorAll("tbody tr").length>10)`, "4 true")
	b.do(chromedp.Evaluate("history.back()", nil), chromedp.Sleep(500*time.Millisecond), chromedp.WaitReady("footer"))
	b.want("back", `document.querySelector("#q").value`, "search")
	b.keyboard()
	b.hostile()
	b.check()
}

// slash is the key with its text in one event, as a keyboard sends it: chromedp sends two, of
// which the second is typed into the field that the first gave the focus to.
func slash() chromedp.Action {
	return chromedp.ActionFunc(func(ctx context.Context) error {
		if err := input.DispatchKeyEvent(input.KeyDown).WithKey("/").WithText("/").Do(ctx); err != nil {
			return err
		}
		return input.DispatchKeyEvent(input.KeyUp).WithKey("/").Do(ctx)
	})
}

// keyboard: the first tab is the link to the content, and what has the focus is seen to have it.
func (b *browser) keyboard() {
	b.Helper()
	b.open("/hosts")
	b.do(chromedp.KeyEvent(kb.Tab))
	b.want("first tab", "document.activeElement.innerText", "Skip to the content")
	if left := eval[float64](b, "document.activeElement.getBoundingClientRect().left"); left < 0 {
		b.Errorf("the link to the content stays at %v when it has the focus", left)
	}
	b.do(chromedp.KeyEvent(kb.Enter))
	b.want("skipped to", "document.activeElement.id", "content")
	seen := map[string]bool{}
	for range 12 {
		b.do(chromedp.KeyEvent(kb.Tab))
		b.want("outline", `getComputedStyle(document.activeElement).outlineStyle!="none"||!!document.activeElement.closest("svg")?"yes":document.activeElement.outerHTML`, "yes")
		seen[eval[string](b, "document.activeElement.outerHTML")] = true
	}
	if len(seen) != 12 {
		b.Errorf("12 tabs reach %d things", len(seen))
	}
}

// hostile: names that would run a script do not, and lead to their own page.
func (b *browser) hostile() {
	b.Helper()
	f := fleet(200, 20)
	b.open(address("/host", "host", f.Host(199)))
	b.want("title", `document.querySelector("h1").innerText`, f.Host(199))
	b.do(chromedp.Click("tbody th a", chromedp.ByQuery), chromedp.WaitReady("footer"))
	b.want("page of its workload", "location.pathname", "/workload")
	b.do(chromedp.Evaluate(`document.getElementById("since").value="7d";document.getElementById("since").form.requestSubmit()`, nil), chromedp.Sleep(500*time.Millisecond), chromedp.WaitReady("footer"))
	if at := eval[string](b, "location.href"); !strings.Contains(at, "since=7d") {
		b.Errorf("the time does not change: %s", at)
	}
	b.open(address("/workload", "host", f.Host(199), "workload", f.Workload(199, 0)))
	b.do(chromedp.Evaluate(`document.getElementById("since").value="7d";document.getElementById("since").form.requestSubmit()`, nil), chromedp.Sleep(500*time.Millisecond), chromedp.WaitReady("footer"))
	if n := eval[int](b, `document.querySelectorAll("svg[role=img]").length`); n == 0 {
		b.Errorf("a workload whose name is no text has no page after its time changes: %s", eval[string](b, "location.href"))
	}
}

func (b *browser) check() {
	b.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, text := range b.bad {
		b.Error(text)
	}
	if b.sent < 10 {
		b.Errorf("only %d requests were seen", b.sent)
	}
	b.Logf("%d requests, all to the hub; nothing in the console", b.sent)
}

// Without scripts the page says the same, and its form and links work.
func TestBrowserWithoutScript(t *testing.T) {
	b := newBrowser(t, serve(t))
	b.open("/?q=search")
	with := eval[string](b, `document.querySelector("main").innerText`)
	b.do(emulation.SetScriptExecutionDisabled(true))
	b.open("/?q=search")
	b.want("page", `document.querySelector("main").innerText`, with)
	b.open("/")
	b.do(chromedp.SendKeys("#q", "search-index", chromedp.ByQuery), chromedp.Click("button", chromedp.ByQuery), chromedp.Sleep(300*time.Millisecond), chromedp.WaitReady("footer"))
	b.want("filtered", `[...document.querySelectorAll("tbody th")].map(e=>e.innerText.trim()).join()`, "search-index")
}

// No page is wider than a narrow phone, or than a screen. With HOMENODE_PICTURES the pictures
// are kept in that folder, for a person to look at.
func TestBrowserWidths(t *testing.T) {
	b := newBrowser(t, serve(t))
	dir := os.Getenv("HOMENODE_PICTURES")
	for name, target := range pages(fleet(200, 20)) {
		for _, wide := range []int64{360, 1280} {
			b.do(chromedp.EmulateViewport(wide, 900))
			b.open(target)
			if over := eval[int64](b, "document.documentElement.scrollWidth"); over > wide {
				t.Errorf("%s is %d pixels wide on a screen of %d", name, over, wide)
			}
			if dir == "" {
				continue
			}
			for _, scheme := range []string{"light", "dark"} {
				var picture []byte
				b.do(emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}), chromedp.FullScreenshot(&picture, 100))
				if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("%s-%d-%s.png", url.PathEscape(name), wide, scheme)), picture, 0o644); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
}
