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
	legendRow    = 20.0
	titleChar    = 8.0 // width of a character of the title
	textChar     = 6.7
	widest       = 2400.0 // a flow wider than this is folded
)

// item is a node, or the point where a curve crosses a layer.
type item struct {
	node         int // -1 for a crossing
	layer, order int
	y            float64 // of the middle of the ports, or of the crossing
	up, down     float64 // from y to the ends of the box
	width        float64
	next         []link     // neighbours that determine the order
	pull         []link     // neighbours that determine the height
	sides        [2][]*port // ports towards earlier and towards later layers
}

// link is a neighbour with its weight, and its wanted distance below the item.
type link struct {
	to     int
	weight float64
	lower  float64
}

// port is the start or end of curves: one for each set of variables.
type port struct {
	label   string
	output  bool
	bundles []*bundle
}

// Sides of a box.
const (
	before = 0
	behind = 1
)

// layout is one connected part of the system.
type layout struct {
	s       *System
	items   []*item
	nodes   map[int]int // node -> item
	bundles []*bundle
	layers  [][]int // items by layer and order
	// By layer.
	x, width []float64
	band     []int
	reversed []bool // its band runs from right to left, upside down
	top      float64
	w, h     float64
}

// parts divides the nodes into connected parts, the largest first, each in the order of the nodes.
func parts(n int, list []*bundle) [][]int {
	root := make([]int, n)
	for i := range root {
		root[i] = i
	}
	find := func(i int) int {
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

// newLayout arranges one part, with its upper left corner at 0.
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
	l.columns()
	return l
}

// direct finds the bundles that lead back, in the order of nodes by eades: sources first, sinks
// last, and else the node with the most outgoing minus incoming edges.
func (l *layout) direct() {
	rank := make([]int, len(l.items))
	for i, v := range l.flowOrder() {
		rank[v] = i
	}
	for _, b := range l.bundles {
		b.back = rank[l.nodes[b.from]] >= rank[l.nodes[b.to]]
	}
}

// flowOrder returns the items in the order of the signal flow.
func (l *layout) flowOrder() []int {
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
	surplus := func(v int) (d int) {
		for _, w := range out[v] {
			d += w
		}
		for _, w := range in[v] {
			d -= w
		}
		return d
	}
	left := make([]int, n)
	for i := range left {
		left[i] = i
	}
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
	var first, last []int
	for len(left) > 0 {
		if sink := slices.IndexFunc(left, func(v int) bool { return len(out[v]) == 0 }); sink >= 0 {
			last = append(last, remove(sink))
			continue
		}
		source := slices.IndexFunc(left, func(v int) bool { return len(in[v]) == 0 })
		if source < 0 {
			source = 0
			for at, v := range left {
				if surplus(v) > surplus(left[source]) {
					source = at
				}
			}
		}
		first = append(first, remove(source))
	}
	slices.Reverse(last)
	return append(first, last...)
}

// layer gives each node a layer: after all nodes that feed it, and near to the nodes that it feeds.
// A bundle that leads back but ends in a later layer becomes part of the flow.
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
	l.spread(from)
	for _, b := range l.bundles {
		f, t := l.items[l.nodes[b.from]], l.items[l.nodes[b.to]]
		b.back, b.around = f.layer > t.layer, f.layer == t.layer
	}
}

// spread divides a layer with too many boxes. Boxes that feed no later layer are distributed over
// several layers in turn, so that each stays at the height of its neighbours.
func (l *layout) spread(from [][]int) {
	most := max(8, int(math.Ceil(1.4*math.Sqrt(float64(len(l.items))))))
	layers := map[int][]int{}
	last := 0
	for i, it := range l.items {
		layers[it.layer] = append(layers[it.layer], i)
		last = max(last, it.layer)
	}
	for at := range last + 1 {
		var leaves []int
		for _, i := range layers[at] {
			if len(from[i]) == 0 {
				leaves = append(leaves, i)
			}
		}
		if len(layers[at]) <= most || len(leaves) < 2 {
			continue
		}
		columns := (len(layers[at]) + most - 1) / most
		for k, i := range leaves {
			l.items[i].layer += k % columns
		}
	}
}

// ports groups the bundles at a node by their variables, and sets the size of the box.
func (l *layout) ports() {
	for _, b := range l.bundles {
		f, t := l.items[l.nodes[b.from]], l.items[l.nodes[b.to]]
		out, in := behind, before
		if b.back {
			out, in = before, behind
		}
		label := l.s.label(b, true)
		// An output may feed several inputs, but an input has one source.
		same := slices.IndexFunc(f.sides[out], func(p *port) bool {
			return p.output && p.label == label && sameOutputs(l.s, p.bundles[0], b)
		})
		if same >= 0 {
			f.sides[out][same].bundles = append(f.sides[out][same].bundles, b)
		} else {
			f.sides[out] = append(f.sides[out], &port{label, true, []*bundle{b}})
		}
		t.sides[in] = append(t.sides[in], &port{l.s.label(b, false), false, []*bundle{b}})
	}
	for _, it := range l.items {
		node := &l.s.Nodes[it.node]
		longest := func(list []*port) (n int) {
			for _, p := range list {
				n = max(n, len([]rune(p.label)))
			}
			return n
		}
		it.width = math.Ceil(max(84, titleChar*float64(len([]rune(cut(node.Name, 34))))+2*boxPadding,
			textChar*float64(len([]rune(cut(node.Detail, 40))))+2*boxPadding,
			textChar*float64(longest(it.sides[before])+longest(it.sides[behind]))+4*boxPadding))
		half := rowHeight * float64(max(len(it.sides[before]), len(it.sides[behind]))) / 2
		it.up, it.down = titleHeight+half, half+boxPadding
		if node.Detail != "" {
			it.up += detailHeight
		}
	}
}

// sameOutputs reports whether two bundles have the same outputs.
func sameOutputs(s *System, a, b *bundle) bool {
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

// cross adds an item to each layer that a bundle crosses. A bundle within a layer gets one beside
// the boxes.
func (l *layout) cross() {
	for _, b := range l.bundles {
		f, t := l.items[l.nodes[b.from]], l.items[l.nodes[b.to]]
		low, high := min(f.layer, t.layer)+1, max(f.layer, t.layer)-1
		if b.around {
			low, high = f.layer, f.layer
		}
		for layer := low; layer <= high; layer++ {
			l.items = append(l.items, &item{node: -1, layer: layer, up: 0.5, down: 0.5})
			b.chain = append(b.chain, len(l.items)-1)
		}
		if b.back {
			slices.Reverse(b.chain)
		}
		l.along(b, func(x, y int, weight float64) {
			l.items[x].next = append(l.items[x].next, link{to: y, weight: weight})
			l.items[y].next = append(l.items[y].next, link{to: x, weight: weight})
		})
	}
	for i, it := range l.items {
		for len(l.layers) <= it.layer {
			l.layers = append(l.layers, nil)
		}
		it.order = len(l.layers[it.layer])
		l.layers[it.layer] = append(l.layers[it.layer], i)
	}
}

// along calls f for the parts of a bundle from item to item. The weights make long curves straight.
func (l *layout) along(b *bundle, f func(from, to int, weight float64)) {
	last := l.nodes[b.from]
	for k, at := range append(slices.Clone(b.chain), l.nodes[b.to]) {
		weight := 1.0
		if k > 0 && k < len(b.chain) {
			weight = 6
		}
		f(last, at, weight)
		last = at
	}
}

// sort orders the layers by barycentres, from left to right and back, and keeps the order with the
// fewest crossings.
func (l *layout) sort() {
	sweeps := 24
	if len(l.items) > 4000 {
		sweeps = 2
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
						want := (float64(o.order) + 0.5) / float64(len(l.layers[o.layer]))
						total, weight = total+n.weight*want*float64(len(l.layers[at])), weight+n.weight
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

// crossings counts the links between neighbouring layers that cross, and adds the distances of
// curves within a layer from their boxes.
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

// sortPorts orders the ports of each box by the directions of their curves, and sets the links for
// the heights.
func (l *layout) sortPorts() {
	for _, it := range l.items {
		for _, list := range it.sides {
			aim := func(p *port) float64 {
				total := 0.0
				for _, b := range p.bundles {
					next := l.nodes[b.from]
					if n := len(b.chain); p.output && n > 0 {
						next = b.chain[0]
					} else if p.output {
						next = l.nodes[b.to]
					} else if n > 0 {
						next = b.chain[n-1]
					}
					o := l.items[next]
					a := (float64(o.order) + 0.5) / float64(len(l.layers[o.layer]))
					if b.around { // beside the box, above or below
						if a = -1; o.order > it.order {
							a = 2
						}
					}
					total += a
				}
				return total / float64(len(p.bundles))
			}
			slices.SortStableFunc(list, func(a, b *port) int { return cmp.Compare(aim(a), aim(b)) })
			for i, p := range list {
				at := rowHeight * (float64(i) + 0.5 - float64(len(list))/2)
				for _, b := range p.bundles {
					if p.output {
						b.fromAt = at
					} else {
						b.toAt = at
					}
				}
			}
		}
	}
	for _, b := range l.bundles {
		from, to := l.nodes[b.from], l.nodes[b.to]
		l.along(b, func(x, y int, weight float64) {
			lower := 0.0
			if x == from {
				lower += b.fromAt
			}
			if y == to {
				lower -= b.toAt
			}
			l.items[x].pull = append(l.items[x].pull, link{y, weight, lower})
			l.items[y].pull = append(l.items[y].pull, link{x, weight, -lower})
		})
	}
}

// place sets the heights: each item is as near to its neighbours as the order and the sizes of its
// layer allow.
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
	sweeps := 24
	if len(l.items) > 4000 {
		sweeps = 6
	}
	for sweep := range sweeps {
		for k := range l.layers {
			at := k
			if sweep%2 == 1 {
				at = len(l.layers) - 1 - k
			}
			l.settle(at)
		}
	}
}

// extent returns the range of the heights of some layers.
func (l *layout) extent(from, to int) (low, high float64) {
	low, high = math.Inf(1), math.Inf(-1)
	for _, layer := range l.layers[from:to] {
		for _, i := range layer {
			it := l.items[i]
			low, high = min(low, it.y-it.up), max(high, it.y+it.down)
		}
	}
	return low, high
}

// apart returns the minimum vertical distance of two neighbouring items.
func (l *layout) apart(a, b int) float64 {
	x, y := l.items[a], l.items[b]
	if l.reversed[x.layer] {
		x, y = y, x
	}
	gap := nodeGap
	if x.node < 0 && y.node < 0 {
		gap = laneGap
	} else if x.node < 0 || y.node < 0 {
		gap = nodeGap * 0.7
	}
	return x.down + gap + y.up
}

// settle moves the items of a layer towards their neighbours, with the least sum of squared
// distances in the given order (pool adjacent violators).
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
		for _, n := range it.pull {
			o := l.items[n.to]
			y := o.y - n.lower
			if o.layer == at {
				if it.node >= 0 {
					continue // the curve follows the box, not the reverse
				}
				if y = o.y + o.down + nodeGap; o.order > it.order {
					y = o.y - o.up - nodeGap
				}
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

// columns places the layers beside each other, in bands if that is too wide.
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
	l.place()
	per := l.fold(total)
	y := 0.0
	for first := 0; first < n; first += per {
		y += l.placeBand(first, min(n, first+per), y) + bandGap
	}
	l.h = y - bandGap
	for at := range l.layers {
		if l.reversed[at] {
			l.x[at] = l.w - l.x[at] - l.width[at]
		}
	}
	l.turnPorts()
}

// fold divides the layers into bands if their total width is too large, and returns the number
// of layers in a band.
func (l *layout) fold(total float64) int {
	n, bands := len(l.layers), 1
	if total > widest {
		// The ratio of width to height is to be 3 : 2.
		low, high := l.extent(0, n)
		bands = max(1, int(math.Round(math.Sqrt(total/(1.5*(high-low+bandGap))))), int(math.Ceil(total/(2*widest))))
		bands = min(bands, n)
	}
	per := (n + bands - 1) / bands
	for at := range n {
		l.band[at] = at / per
		l.reversed[at] = l.band[at]%2 == 1
	}
	if bands > 1 {
		l.place()
	}
	return per
}

// placeBand puts a band of layers at a height, and returns how high it is.
func (l *layout) placeBand(first, end int, y float64) float64 {
	if l.reversed[first] { // turn it upside down
		for _, layer := range l.layers[first:end] {
			for _, i := range layer {
				l.items[i].y *= -1
			}
		}
	}
	low, high := l.extent(first, end)
	x := 0.0
	for at := first; at < end; at++ {
		l.x[at] = x
		x += l.width[at] + columnGap
		for _, i := range l.layers[at] {
			l.items[i].y += y - low
		}
	}
	l.w = max(l.w, x-columnGap)
	return high - low
}

// turnPorts turns the ports in bands that are upside down, and sets how far the curves around
// boxes reach out: differently for those of one layer.
func (l *layout) turnPorts() {
	count := map[int]int{}
	for _, b := range l.bundles {
		f, t := l.items[l.nodes[b.from]], l.items[l.nodes[b.to]]
		if l.reversed[f.layer] {
			b.fromAt *= -1
		}
		if l.reversed[t.layer] {
			b.toAt *= -1
		}
		if b.around { // the curves at one column reach out differently far
			b.turn = 22 + 5*float64(count[f.layer]%6)
			count[f.layer]++
		}
	}
}
