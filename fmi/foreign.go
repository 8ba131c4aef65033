package fmi

// callForeign calls a C function that is an FMU's or runs an FMU's code, with arguments that
// are integers and C addresses. The tag names the call. modes tells that it left with other
// floating-point modes.
func callForeign(t tag, fn uintptr, args ...uintptr) (ret uintptr, modes bool, err error) {
	var mem cmem
	defer mem.release()
	b := mem.batch()
	recs, err := cslice[record](&mem, 1)
	if err != nil {
		return 0, false, err
	}
	recs[0].fn, recs[0].tag = fn, t
	copy(recs[0].i[:], args)
	b.recs, b.n = address(recs), 1
	run(b)
	return recs[0].ret, b.modes != 0, nil
}

// foreignText calls a function of an FMU that gives a short text.
func foreignText(t tag, fn uintptr) (string, error) {
	p, _, err := callForeign(t, fn)
	const longest = 64
	return cstring(p, longest), err
}
