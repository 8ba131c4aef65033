package analyze

import "sort"

// ownerOf returns the subsystem of an entry of u or y, whose parts begin at offsets.
func ownerOf(offsets []int, entry int) int { return sort.SearchInts(offsets, entry+1) - 1 }
