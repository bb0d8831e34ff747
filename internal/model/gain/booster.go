// SPDX-License-Identifier: Apache-2.0

package gain

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
)

// booster is a file of XGBoost: trees whose leaves are added up.
type booster struct {
	base  float32
	trees []tree
}

// tree has its nodes as columns, the root first. A leaf has left −1, and its value in split.
type tree struct {
	left, right, feature []int
	split                []float32
	unknownLeft          []bool
	mean                 []float32 // of the rows below a node: what it stands for in Reason
}

const maxTrees, maxNodes = 10_000, 1 << 16

// object, list and numbers find a part of a decoded file.
func object(v any, key string) (map[string]any, error) {
	m, _ := v.(map[string]any)
	o, ok := m[key].(map[string]any)
	if !ok {
		return nil, fmt.Errorf("no object %q", key)
	}
	return o, nil
}

func numbers(m map[string]any, key string, n int) ([]float64, error) {
	all, ok := m[key].([]float64)
	if !ok || len(all) != n {
		return nil, fmt.Errorf("%d values of %q: want %d", len(all), key, n)
	}
	return all, nil
}

// decodeBooster reads a file that was fitted on so many features.
func decodeBooster(data []byte, features int) (*booster, error) {
	v, err := decodeUBJ(data)
	if err != nil {
		return nil, err
	}
	learner, err := object(v, "learner")
	if err != nil {
		return nil, err
	}
	b := &booster{}
	if err := b.about(learner, features); err != nil {
		return nil, err
	}
	gradient, err := object(learner, "gradient_booster")
	if err != nil {
		return nil, err
	}
	model, err := object(gradient, "model")
	if err != nil {
		return nil, err
	}
	trees, _ := model["trees"].([]any)
	if len(trees) < 1 || len(trees) > maxTrees {
		return nil, fmt.Errorf("%d trees: want 1 to %d", len(trees), maxTrees)
	}
	for i, t := range trees {
		one, err := decodeTree(t, features)
		if err != nil {
			return nil, fmt.Errorf("tree %d: %w", i, err)
		}
		b.trees = append(b.trees, one)
	}
	return b, nil
}

// about reads what a model says of itself: its kind, its features, where sums begin.
func (b *booster) about(learner map[string]any, features int) error {
	param, err := object(learner, "learner_model_param")
	if err != nil {
		return err
	}
	if n := param["num_feature"]; n != strconv.Itoa(features) {
		return fmt.Errorf("it was fitted on %v features: want %d", n, features)
	}
	objective, err := object(learner, "objective")
	if err != nil {
		return err
	}
	// Of these the sum is the prediction. Others transform it.
	if name := objective["name"]; name != "reg:squarederror" && name != "reg:absoluteerror" && name != "reg:pseudohubererror" {
		return fmt.Errorf("objective %.40q: want a regression whose sum of leaves is the prediction", fmt.Sprint(name))
	}
	text, _ := param["base_score"].(string)
	var base []float64
	if json.Unmarshal([]byte(text), &base) != nil || len(base) != 1 || math.Abs(base[0]) > 1e6 {
		return fmt.Errorf("base_score %.40q: want a list of one number", text)
	}
	one, err := strconv.ParseFloat(text[1:len(text)-1], 32) // straight to float32: rounded once
	if err != nil {
		return fmt.Errorf("base_score %.40q: %w", text, err)
	}
	b.base = float32(one)
	return nil
}

func decodeTree(v any, features int) (t tree, err error) {
	m, _ := v.(map[string]any)
	lefts, _ := m["left_children"].([]float64)
	n := len(lefts)
	if n < 1 || n > maxNodes {
		return t, fmt.Errorf("%d nodes: want 1 to %d", n, maxNodes)
	}
	columns := map[string][]float64{}
	for _, key := range []string{"left_children", "right_children", "split_indices", "split_conditions", "default_left", "sum_hessian", "split_type"} {
		if columns[key], err = numbers(m, key, n); err != nil {
			return t, err
		}
	}
	for i := range n {
		left, right, feature := int(lefts[i]), int(columns["right_children"][i]), int(columns["split_indices"][i])
		split := float32(columns["split_conditions"][i])
		switch {
		case math.IsNaN(float64(split)) || math.IsInf(float64(split), 0):
			return t, fmt.Errorf("node %d: %v", i, split)
		case left != -1 && (left <= i || left >= n || right <= i || right >= n): // so every way ends
			return t, fmt.Errorf("node %d: children %d and %d: want later nodes, up to %d", i, left, right, n-1)
		case left != -1 && (feature < 0 || feature >= features):
			return t, fmt.Errorf("node %d: feature %d of %d", i, feature, features)
		case columns["split_type"][i] != 0:
			return t, errors.New("it splits by categories, which no feature is")
		}
		t.left, t.right, t.feature = append(t.left, left), append(t.right, right), append(t.feature, feature)
		t.split, t.unknownLeft = append(t.split, split), append(t.unknownLeft, columns["default_left"][i] != 0)
	}
	t.means(columns["sum_hessian"])
	return t, nil
}

// means fills in what each node stands for: the mean leaf of the rows below it.
func (t *tree) means(rows []float64) {
	t.mean = make([]float32, len(t.left))
	for i := len(t.left) - 1; i >= 0; i-- { // children come later
		l, r := t.left[i], t.right[i]
		if l < 0 {
			t.mean[i] = t.split[i]
			continue
		}
		t.mean[i] = (t.mean[l] + t.mean[r]) / 2
		if all := rows[l] + rows[r]; rows[l] >= 0 && rows[r] >= 0 && all > 0 {
			t.mean[i] = float32((rows[l]*float64(t.mean[l]) + rows[r]*float64(t.mean[r])) / all)
		}
	}
}

// next is the node below.
func (t *tree) next(at int, x []float32) int {
	v := x[t.feature[at]]
	if v != v {
		if t.unknownLeft[at] {
			return t.left[at]
		}
		return t.right[at]
	}
	if v < t.split[at] {
		return t.left[at]
	}
	return t.right[at]
}

// predict adds the leaves to the base, in order, in float32, as XGBoost does.
func (b *booster) predict(x []float32) float32 {
	sum := b.base
	for i := range b.trees {
		t := &b.trees[i]
		at := 0
		for t.left[at] >= 0 {
			at = t.next(at, x)
		}
		sum += t.split[at]
	}
	return sum
}

// parts is what each feature adds to a prediction: along each tree's way, how the mean of the
// rows changes at a node belongs to the feature that is asked there (Saabas's attribution).
func (b *booster) parts(x []float32) []float64 {
	parts := make([]float64, len(x))
	for i := range b.trees {
		t := &b.trees[i]
		for at := 0; t.left[at] >= 0; {
			next := t.next(at, x)
			parts[t.feature[at]] += float64(t.mean[next]) - float64(t.mean[at])
			at = next
		}
	}
	return parts
}
