package native

// SetThreadStack sets the stack size of new threads in bytes, if the C library supports it.
func SetThreadStack(size uintptr) {
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
	attributes, err := Alloc(room)
	if err != nil {
		return
	}
	defer cfree(attributes)
	p := uintptr(attributes)
	if int32(CallInts(get, p)) != 0 {
		return
	}
	if int32(CallInts(resize, p, size)) == 0 {
		CallInts(set, p)
	}
	if destroy, err := libcSymbol("pthread_attr_destroy"); err == nil {
		CallInts(destroy, p)
	}
}
