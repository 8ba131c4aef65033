package fmi

// setThreadStack sets the size of the stacks of new threads, where the C library does so.
func setThreadStack(size uintptr) {
	get, err := libcSymbol("pthread_getattr_default_np")
	if err != nil {
		return
	}
	set, err := libcSymbol("pthread_setattr_default_np")
	if err != nil {
		return
	}
	resize, err := libcSymbol("pthread_attr_setstacksize")
	if err != nil {
		return
	}
	const room = 256 // for a pthread_attr_t
	attributes := calloc(room)
	if attributes == nil {
		return
	}
	defer cfree(attributes)
	p := uintptr(attributes)
	if int32(callInts(get, p)) != 0 {
		return
	}
	if int32(callInts(resize, p, size)) == 0 {
		callInts(set, p)
	}
	if destroy, err := libcSymbol("pthread_attr_destroy"); err == nil {
		callInts(destroy, p)
	}
}
