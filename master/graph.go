package master

import "slices"

// feedThemselves reports, by subsystem, whether it is in a loop of connections.
func (s *System) feedThemselves() []bool {
	out := make([]bool, len(s.Infos))
	sources := func(v int) (out []int) {
		for k := s.InAt[v]; k < s.InAt[v+1]; k++ {
			if from := s.SourceSubsystem(k); from >= 0 {
				out = append(out, from)
			}
		}
		slices.Sort(out)
		return slices.Compact(out)
	}
	for _, scc := range components(len(s.Infos), sources) {
		for _, i := range scc {
			out[i] = cyclic(scc, sources)
		}
	}
	return out
}

// components returns the strongly connected components of a graph with n nodes
// and successors succ, each ascending, in topological order: every edge leads
// from a component to itself or to a later one (Tarjan 1972).
func components(n int, succ func(v int) []int) [][]int {
	const unseen = -1
	var (
		index   = make([]int, n)
		low     = make([]int, n)
		onStack = make([]bool, n)
		stack   []int
		next    int
		out     [][]int
	)
	for v := range index {
		index[v] = unseen
	}
	type frame struct {
		v, edge int
		succ    []int
	}
	var frames []frame
	push := func(v int) {
		index[v], low[v] = next, next
		next++
		stack = append(stack, v)
		onStack[v] = true
		frames = append(frames, frame{v: v, succ: succ(v)})
	}
	for root := range n {
		if index[root] != unseen {
			continue
		}
		push(root)
		for len(frames) > 0 {
			f := &frames[len(frames)-1]
			if f.edge < len(f.succ) {
				w := f.succ[f.edge]
				f.edge++
				if index[w] == unseen {
					push(w)
				} else if onStack[w] {
					low[f.v] = min(low[f.v], index[w])
				}
				continue
			}
			v := f.v
			frames = frames[:len(frames)-1]
			if len(frames) > 0 {
				parent := frames[len(frames)-1].v
				low[parent] = min(low[parent], low[v])
			}
			if low[v] == index[v] {
				at := slices.Index(stack, v)
				scc := slices.Clone(stack[at:])
				stack = stack[:at]
				for _, w := range scc {
					onStack[w] = false
				}
				slices.Sort(scc)
				out = append(out, scc)
			}
		}
	}
	slices.Reverse(out)
	return out
}

// cyclic reports whether a component holds a cycle.
func cyclic(scc []int, succ func(v int) []int) bool {
	return len(scc) > 1 || slices.Contains(succ(scc[0]), scc[0])
}
