package native

// callForeign calls a C function that is an FMU's or runs an FMU's code, with arguments that
// are integers and C addresses. The tag names the call. modes tells that it left with other
// floating-point modes.
func callForeign(t Tag, fn uintptr, args ...uintptr) (ret uintptr, modes bool, err error) {
	var mem Memory
	defer mem.Release()
	b := mem.Batch()
	recs, err := Slice[Record](&mem, 1)
	if err != nil {
		return 0, false, err
	}
	recs[0].Fn, recs[0].Tag = fn, t
	copy(recs[0].Int[:], args)
	b.Recs, b.N = Address(recs), 1
	Run(b)
	return recs[0].Ret, b.Modes != 0, nil
}

// CallText calls a function of an FMU that gives a short text.
func CallText(t Tag, fn uintptr) (string, error) {
	p, _, err := callForeign(t, fn)
	const longest = 64
	return String(p, longest), err
}
