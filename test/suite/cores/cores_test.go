package cores

import (
	"slices"
	"testing"
)

func TestVisibleCountsFromZero(t *testing.T) {
	for _, c := range []struct {
		cores []int
		want  string
	}{{[]int{4, 5, 6, 7}, "0-3"}, {[]int{5}, "1"}, {[]int{2, 3, 9}, "0-1,3"}, {nil, ""}} {
		got := Visible(c.cores, 2)
		if got != c.want {
			t.Errorf("Visible(%v) = %q, want %q", c.cores, got, c.want)
		}
		if back, err := OfNode(got, Devices(c.cores, 2), 2); err != nil || !slices.Equal(back, c.cores) {
			t.Errorf("OfNode(%q) = %v, %v, want %v", got, back, err, c.cores)
		}
	}
}

func TestCoresThatAreNotThere(t *testing.T) {
	for _, text := range []string{"4", "0-4", "2-1", "-1", "1,,2", "a", "0 1"} {
		if cores, err := OfNode(text, []int{3, 7}, 2); err == nil {
			t.Errorf("OfNode(%q) = %v", text, cores)
		}
	}
}
