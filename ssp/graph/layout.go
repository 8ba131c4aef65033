package graph

import (
	"cmp"
	"math"
	"slices"
)

// Sizes in px.
const (
	titleHeight  = 20.0
	detailHeight = 14.0
	rowHeight    = 15.0
	boxPadding   = 8.0
	columnGap    = 96.0
	nodeGap      = 22.0
	laneGap      = 11.0
	bandGap      = 46.0
	margin       = 24.0
	titleChar    = 7.4 // width of a character of the title
	textChar     = 5.7
	widest       = 2400.0 // a flow wider than this is folded
)

// item is a node, or the place where a curve crosses a layer.
type item struct {
	node          int // -1 for a crossing
	layer, order  int
	y             float64 // of the middle
	height, width float64
	next          []link // neighbours in other layers, and of the ends of back edges in their own
	in, out       []port
}

// link is a neighbour with its weight.
type link struct {
	to     int
	weight float64
}

// port is where curves begin or end: one for each set of variables.
type port struct {
	label   string
	bundles []*bundle
}

// layout is one connected part of the system.
type layout struct {
	s       *System
	items   []*item
	nodes   map[int]int // node -> item
	bundles []*bundle
	layers  [][]int // items by layer and order
	// Of each layer.
	x, width []float64
	band     []int
	reversed []bool // its band goes from right to left
	top      float64
	w, h     float64
}

// parts divides the nodes into those that are connected with each other, the
// largest first, each in the order of the nodes; single ones come last.
func parts(n int, list []*bundle) [][]int {
	root := make([]int, n)
	for i := range root {
		root[i] = i
	}
	var find func(i int) int
	find = func(i int) int {
		for root[i] != i {
			root[i] = root[root[i]]
			i = root[i]
		}
		return i
	}
	for _, b := range list {
		x, y := find(b.from), find(b.to)
		root[max(x, y)] = min(x, y)
	}
	index := map[int]int{}
	var out [][]int
	for i := range n {
		r := find(i)
		at, ok := index[r]
		if !ok {
			at = len(out)
			index[r] = at
			out = append(out, nil)
		}
		out[at] = append(out[at], i)
	}
	slices.SortStableFunc(out, func(a, b []int) int { return len(b) - len(a) })
	return out
}

// newLayout lays one part out, with its upper left corner at 0.
func newLayout(s *System, nodes []int, all []*bundle) *layout {
	l := &layout{s: s, nodes: map[int]int{}}
	for _, n := range nodes {
		l.nodes[n] = len(l.items)
		l.items = append(l.items, &item{node: n})
	}
	for _, b := range all {
		if _, mine := l.nodes[b.from]; mine {
			l.bundles = append(l.bundles, b)
		}
	}
	l.direct()
	l.layer()
	l.ports()
	l.cross()
	l.sort()
	l.sortPorts()
	l.place()
	l.columns()
	return l
}

// direct finds the bundles that lead back: in the order of nodes after eades, which
// puts sources first, sinks last, and else the node with the most edges out over in.
func (l *layout) direct() {
	n := len(l.items)
	out, in := make([]map[int]int, n), make([]map[int]int, n)
	for i := range n {
		out[i], in[i] = map[int]int{}, map[int]int{}
	}
	for _, b := range l.bundles {
		if f, t := l.nodes[b.from], l.nodes[b.to]; f != t {
			out[f][t], in[t][f] = len(b.edges), len(b.edges)
		}
	}
	sum := func(m map[int]int) (s int) {
		for _, w := range m {
			s += w
		}
		return s
	}
	left := make([]int, n)
	for i := range left {
		left[i] = i
	}
	var first, last []int
	remove := func(at int) int {
		v := left[at]
		left = slices.Delete(left, at, at+1)
		for u := range in[v] {
			delete(out[u], v)
		}
		for u := range out[v] {
			delete(in[u], v)
		}
		return v
	}
	for len(left) > 0 {
		sink := slices.IndexFunc(left, func(v int) bool { return len(out[v]) == 0 })
		if sink >= 0 {
			last = append(last, remove(sink))
			continue
		}
		source := slices.IndexFunc(left, func(v int) bool { return len(in[v]) == 0 })
		if source < 0 {
			source = 0
			best := math.MinInt
			for at, v := range left {
				if d := sum(out[v]) - sum(in[v]); d > best {
					source, best = at, d
				}
			}
		}
		first = append(first, remove(source))
	}
	slices.Reverse(last)
	rank := make([]int, n)
	for i, v := range append(first, last...) {
		rank[v] = i
	}
	for _, b := range l.bundles {
		b.back = rank[l.nodes[b.from]] >= rank[l.nodes[b.to]]
	}
}

// layer gives each node a layer: behind all that feeds it, and else as near to what
// it feeds as can be. A bundle that leads back and still ends in a later layer goes
// with the flow.
func (l *layout) layer() {
	n := len(l.items)
	into, from := make([][]int, n), make([][]int, n)
	for _, b := range l.bundles {
		if f, t := l.nodes[b.from], l.nodes[b.to]; !b.back {
			into[t] = append(into[t], f)
			from[f] = append(from[f], t)
		}
	}
	done := make([]bool, n)
	var order []int
	var visit func(v int)
	visit = func(v int) {
		if done[v] {
			return
		}
		done[v] = true
		for _, u := range into[v] {
			visit(u)
			l.items[v].layer = max(l.items[v].layer, l.items[u].layer+1)
		}
		order = append(order, v)
	}
	for v := range n {
		visit(v)
	}
	for range 2 {
		for _, v := range slices.Backward(order) {
			latest := math.MaxInt
			for _, t := range from[v] {
				latest = min(latest, l.items[t].layer-1)
			}
			if latest != math.MaxInt && len(from[v]) > len(into[v]) {
				l.items[v].layer = max(l.items[v].layer, latest)
			}
		}
	}
	for _, b := range l.bundles {
		f, t := l.items[l.nodes[b.from]], l.items[l.nodes[b.to]]
		b.back = f.layer >= t.layer
	}
}

// ports groups the bundles at a node by the variables they carry, and sizes the box.
func (l *layout) ports() {
	put := func(list []port, label string, b *bundle) []port {
		for i := range list {
			// Two curves into one input do not occur; ports that only look alike stay two.
			if list[i].label == label && sameEnds(l.s, list[i].bundles[0], b) {
				list[i].bundles = append(list[i].bundles, b)
				return list
			}
		}
		return append(list, port{label, []*bundle{b}})
	}
	for _, b := range l.bundles {
		f, t := l.items[l.nodes[b.from]], l.items[l.nodes[b.to]]
		f.out = put(f.out, l.s.label(b, true), b)
		t.in = append(t.in, port{l.s.label(b, false), []*bundle{b}})
	}
	for _, it := range l.items {
		node := &l.s.Nodes[it.node]
		longest := func(list []port) (n int) {
			for _, p := range list {
				n = max(n, len([]rune(p.label)))
			}
			return n
		}
		it.width = max(84, titleChar*float64(len([]rune(cut(node.Name, 34))))+2*boxPadding, textChar*float64(len([]rune(cut(node.Detail, 40))))+2*boxPadding,
			textChar*float64(longest(it.in)+longest(it.out))+4*boxPadding)
		it.height = titleHeight + boxPadding + rowHeight*float64(max(len(it.in), len(it.out)))
		if node.Detail != "" {
			it.height += detailHeight
		}
		it.width, it.height = math.Ceil(it.width), math.Ceil(it.height)
	}
}

// sameEnds tells whether two bundles carry the same outputs.
func sameEnds(s *System, a, b *bundle) bool {
	names := func(b *bundle) []string {
		var out []string
		for _, e := range b.edges {
			out = append(out, s.Edges[e].Output)
		}
		slices.Sort(out)
		return slices.Compact(out)
	}
	return slices.Equal(names(a), names(b))
}

// cross puts an item into each layer that a bundle crosses; one that leads back also
// crosses those of its ends, beside the boxes.
func (l *layout) cross() {
	join := func(a, b int, weight float64) {
		l.items[a].next = append(l.items[a].next, link{b, weight})
		l.items[b].next = append(l.items[b].next, link{a, weight})
	}
	for _, b := range l.bundles {
		f, t := l.nodes[b.from], l.nodes[b.to]
		low, high, weight := l.items[f].layer+1, l.items[t].layer-1, 1.0
		last := f
		if b.back {
			low, high, weight = l.items[t].layer, l.items[f].layer, 0.5
			last = t
		}
		for layer := low; layer <= high; layer++ {
			l.items = append(l.items, &item{node: -1, layer: layer, height: 1})
			at := len(l.items) - 1
			b.chain = append(b.chain, at)
			if len(b.chain) > 1 {
				weight = 6 // long curves are to be straight
			}
			join(last, at, weight)
			last = at
		}
		if b.back {
			join(last, f, 0.5)
		} else {
			join(last, t, 1)
		}
	}
	for i, it := range l.items {
		for len(l.layers) <= it.layer {
			l.layers = append(l.layers, nil)
		}
		it.order = len(l.layers[it.layer])
		l.layers[it.layer] = append(l.layers[it.layer], i)
	}
}

// sort orders the layers by barycentres, from left to right and back, and keeps the
// order with the fewest crossings.
func (l *layout) sort() {
	sweeps := 24
	if len(l.items) > 4000 {
		sweeps = 4
	}
	best, fewest := l.orders(), l.crossings()
	for sweep := range sweeps {
		forward := sweep%2 == 0
		for k := range l.layers {
			at := k
			if !forward {
				at = len(l.layers) - 1 - k
			}
			key := make(map[int]float64, len(l.layers[at]))
			for _, i := range l.layers[at] {
				it := l.items[i]
				total, weight := 0.0, 0.0
				for _, n := range it.next {
					o := l.items[n.to]
					switch {
					case o.layer == at && it.node < 0: // beside the box
						total, weight = total+n.weight*(float64(o.order)+0.4), weight+n.weight
					case forward && o.layer < at, !forward && o.layer > at:
						total, weight = total+n.weight*(float64(o.order)+0.5)/float64(len(l.layers[o.layer]))*float64(len(l.layers[at])), weight+n.weight
					}
				}
				key[i] = float64(it.order)
				if weight > 0 {
					key[i] = total / weight
				}
			}
			slices.SortStableFunc(l.layers[at], func(a, b int) int { return cmp.Compare(key[a], key[b]) })
			for order, i := range l.layers[at] {
				l.items[i].order = order
			}
		}
		if c := l.crossings(); c < fewest {
			best, fewest = l.orders(), c
		}
	}
	l.layers = best
	for _, layer := range l.layers {
		for order, i := range layer {
			l.items[i].order = order
		}
	}
}

func (l *layout) orders() [][]int {
	out := make([][]int, len(l.layers))
	for i := range out {
		out[i] = slices.Clone(l.layers[i])
	}
	return out
}

// crossings counts the pairs of links between neighbouring layers that cross, and
// how far the ends of back edges are from their boxes.
func (l *layout) crossings() int {
	total := 0
	for at, layer := range l.layers {
		if at+1 == len(l.layers) {
			break
		}
		// Inversions, by a binary indexed tree over the orders in the next layer.
		size := len(l.layers[at+1])
		tree := make([]int, size+1)
		seen := 0
		for _, i := range layer {
			var ends []int
			for _, n := range l.items[i].next {
				if o := l.items[n.to]; o.layer == at+1 {
					ends = append(ends, o.order)
				}
			}
			for _, e := range ends {
				before := 0 // links so far that end at or above e
				for k := e + 1; k > 0; k -= k & -k {
					before += tree[k]
				}
				total += seen - before
			}
			for _, e := range ends {
				seen++
				for k := e + 1; k <= size; k += k & -k {
					tree[k]++
				}
			}
		}
	}
	for _, it := range l.items {
		for _, n := range it.next {
			if o := l.items[n.to]; it.node < 0 && o.layer == it.layer {
				total += max(0, abs(o.order-it.order)-1)
			}
		}
	}
	return total
}

func abs(n int) int { return max(n, -n) }

// sortPorts orders the ports of each box by where their curves lead.
func (l *layout) sortPorts() {
	for _, it := range l.items {
		if it.node < 0 {
			continue
		}
		aim := func(b *bundle, output bool) float64 {
			// The next item along the curve.
			next := l.nodes[b.to]
			if !output {
				next = l.nodes[b.from]
			}
			if n := len(b.chain); n > 0 {
				next = b.chain[0]
				if output == b.back {
					next = b.chain[n-1]
				}
			}
			o := l.items[next]
			return (float64(o.order) + 0.5) / float64(len(l.layers[o.layer]))
		}
		for _, side := range []struct {
			list   []port
			output bool
		}{{it.in, false}, {it.out, true}} {
			mean := func(p port) float64 {
				total := 0.0
				for _, b := range p.bundles {
					a := aim(b, side.output)
					if b.back { // beside the box, above or below
						end := b.chain[0]
						if side.output {
							end = b.chain[len(b.chain)-1]
						}
						a = -1
						if l.items[end].order > it.order {
							a = 2
						}
					}
					total += a
				}
				return total / float64(len(p.bundles))
			}
			slices.SortStableFunc(side.list, func(a, b port) int { return cmp.Compare(mean(a), mean(b)) })
			for i, p := range side.list {
				at := it.height - boxPadding/2 - rowHeight*(float64(len(side.list)-i)-0.5)
				if extra := max(len(it.in), len(it.out)) - len(side.list); extra > 0 {
					at -= rowHeight * float64(extra) / 2
				}
				for _, b := range p.bundles {
					if side.output {
						b.fromAt = at
					} else {
						b.toAt = at
					}
				}
			}
		}
	}
}

// place finds the heights: each item as near to its neighbours as the order and the
// sizes of the others in its layer allow.
func (l *layout) place() {
	for _, layer := range l.layers {
		y := 0.0
		for k, i := range layer {
			if k > 0 {
				y += l.apart(layer[k-1], i)
			}
			l.items[i].y = y
		}
	}
	for sweep := range 24 {
		for k := range l.layers {
			at := k
			if sweep%2 == 1 {
				at = len(l.layers) - 1 - k
			}
			l.settle(at)
		}
	}
	top := math.Inf(1)
	for _, it := range l.items {
		top = min(top, it.y-it.height/2)
	}
	for _, it := range l.items {
		it.y = math.Round(it.y - top)
		l.h = max(l.h, it.y+it.height/2)
	}
}

// apart is the least distance of the middles of two items, one below the other.
func (l *layout) apart(a, b int) float64 {
	x, y := l.items[a], l.items[b]
	gap := nodeGap
	if x.node < 0 && y.node < 0 {
		gap = laneGap
	} else if x.node < 0 || y.node < 0 {
		gap = nodeGap * 0.7
	}
	return x.height/2 + gap + y.height/2
}

// settle moves a layer to where its neighbours pull it: the least sum of squares of
// the distances under the order (pool adjacent violators).
func (l *layout) settle(at int) {
	type block struct {
		mean, weight float64
		first, n     int
	}
	layer := l.layers[at]
	var blocks []block
	offset := make([]float64, len(layer))
	for k, i := range layer {
		if k > 0 {
			offset[k] = offset[k-1] + l.apart(layer[k-1], i)
		}
		it := l.items[i]
		total, weight := 0.0, 0.0
		for _, n := range it.next {
			o := l.items[n.to]
			y := o.y
			if o.layer == at {
				if it.node >= 0 {
					continue // the curve goes with the box, not the box with it
				}
				side := 1.0
				if o.order > it.order {
					side = -1
				}
				y += side * (o.height/2 + nodeGap)
			}
			total, weight = total+n.weight*y, weight+n.weight
		}
		want := it.y
		if weight == 0 {
			weight = 0.1
		} else {
			want = total / weight
		}
		blocks = append(blocks, block{want - offset[k], weight, k, 1})
		for n := len(blocks); n > 1 && blocks[n-2].mean > blocks[n-1].mean; n = len(blocks) {
			a, b := blocks[n-2], blocks[n-1]
			w := a.weight + b.weight
			blocks = append(blocks[:n-2], block{(a.mean*a.weight + b.mean*b.weight) / w, w, a.first, a.n + b.n})
		}
	}
	for _, b := range blocks {
		for k := b.first; k < b.first+b.n; k++ {
			l.items[layer[k]].y = b.mean + offset[k]
		}
	}
}

// columns places the layers beside each other, folded if that is too wide.
func (l *layout) columns() {
	n := len(l.layers)
	l.x, l.width = make([]float64, n), make([]float64, n)
	l.band, l.reversed = make([]int, n), make([]bool, n)
	total := 0.0
	for at, layer := range l.layers {
		for _, i := range layer {
			l.width[at] = max(l.width[at], l.items[i].width)
		}
		total += l.width[at] + columnGap
	}
	bands := 1
	if total > widest {
		// As wide as a page is to its height of 3 : 2.
		bands = max(1, int(math.Round(math.Sqrt(total/(1.5*(l.h+bandGap))))))
		bands = max(bands, int(math.Ceil(total/(2*widest))))
		bands = min(bands, n)
	}
	per := (n + bands - 1) / bands
	// Each band is as high as what is in it.
	var low, high []float64
	for at := range l.layers {
		b := at / per
		l.band[at], l.reversed[at] = b, b%2 == 1
		if b == len(low) {
			low, high = append(low, math.Inf(1)), append(high, math.Inf(-1))
		}
		for _, i := range l.layers[at] {
			it := l.items[i]
			low[b], high[b] = min(low[b], it.y-it.height/2), max(high[b], it.y+it.height/2)
		}
	}
	y := 0.0
	for b := range low {
		shift := y - low[b]
		y += high[b] - low[b] + bandGap
		x := 0.0
		for at := b * per; at < min(n, (b+1)*per); at++ {
			l.x[at] = x
			x += l.width[at] + columnGap
			for _, i := range l.layers[at] {
				l.items[i].y += shift
			}
		}
		l.w = max(l.w, x-columnGap)
	}
	l.h = y - bandGap
	for at := range l.layers {
		if l.reversed[at] {
			l.x[at] = l.w - l.x[at] - l.width[at]
		}
	}
	// The curves of back edges at one column reach out differently far.
	count := map[[2]int]int{}
	for _, b := range l.bundles {
		if b.back {
			key := [2]int{l.items[l.nodes[b.from]].layer, l.items[l.nodes[b.to]].layer}
			b.turn = 22 + 5*float64(count[key]%6)
			count[key]++
		}
	}
}
