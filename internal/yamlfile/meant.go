// SPDX-License-Identifier: Apache-2.0

package yamlfile

import (
	"reflect"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"
)

// didYouMean is a suggestion at the end of an error; "" if there is none.
func didYouMean(text string) string {
	if text == "" {
		return ""
	}
	return ": did you mean " + text + "?"
}

// meant is what a value of a wrong type was probably meant to be; "" if that is not known.
func meant(n *yaml.Node, want string) string {
	if n.Kind != yaml.ScalarNode {
		return ""
	}
	text := strings.TrimSpace(n.Value)
	_, errWhole := strconv.ParseInt(text, 0, 64)
	_, errNumber := strconv.ParseFloat(text, 64)
	switch {
	case strings.HasPrefix(want, "a duration"):
		return meantTime(text, isNumber(n))
	case want == "true or false":
		switch strings.ToLower(text) {
		case "yes", "y", "on", "1", "true":
			return "true"
		case "no", "n", "off", "0", "false":
			return "false"
		}
	case strings.HasPrefix(want, "a whole number") && !isPlain(n) && errWhole == nil,
		want == "a number" && !isPlain(n) && errNumber == nil:
		return text + ", without quotes"
	}
	return ""
}

// meantTime: a number without a unit is seconds, as in most other programs.
func meantTime(text string, number bool) string {
	try := strings.ReplaceAll(text, " ", "")
	if number {
		try += "s"
	}
	for _, long := range []string{"seconds", "second", "secs", "sec"} {
		if cut, ok := strings.CutSuffix(try, long); ok {
			try = cut + "s"
		}
	}
	for _, long := range []string{"minutes", "minute", "mins", "min"} {
		if cut, ok := strings.CutSuffix(try, long); ok {
			try = cut + "m"
		}
	}
	if _, err := time.ParseDuration(try); err != nil || len(try) > 20 {
		return ""
	}
	return try
}

// namesOf are the names that a struct may have in a file.
func namesOf(t reflect.Type) (names []string) {
	for i := range t.NumField() {
		switch tag, option, _ := strings.Cut(t.Field(i).Tag.Get("yaml"), ","); {
		case option == "inline":
			names = append(names, namesOf(t.Field(i).Type)...)
		case tag != "" && tag != "-":
			names = append(names, tag)
		}
	}
	return names
}

// Nearest is the name that differs least from a mistyped one; "" where none is near: a
// third of its letters may differ.
func Nearest(typed string, names []string) string {
	best, least := "", 1+max(1, min(len(typed)+1, 30)/3)
	if len(typed) > 100 {
		return ""
	}
	for _, name := range names {
		if far := distance(strings.ToLower(typed), name); far < least {
			best, least = name, far
		}
	}
	return best
}

// distance is Levenshtein's, and a swap of neighbours counts as one.
func distance(a, b string) int {
	row := make([][]int, len(a)+1)
	for i := range row {
		row[i] = make([]int, len(b)+1)
		row[i][0] = i
	}
	for j := range row[0] {
		row[0][j] = j
	}
	for i := 1; i <= len(a); i++ {
		for j := 1; j <= len(b); j++ {
			same := 1
			if a[i-1] == b[j-1] {
				same = 0
			}
			row[i][j] = min(row[i-1][j]+1, row[i][j-1]+1, row[i-1][j-1]+same)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[i][j] = min(row[i][j], row[i-2][j-2]+1)
			}
		}
	}
	return row[len(a)][len(b)]
}
