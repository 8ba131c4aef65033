package native

// SetThreadStack sets the stack size of new threads in bytes, if the C library supports it.
func SetThreadStack(size uintptr) {
	get, set, resize := inLibc("pthread_getattr_default_np"), inLibc("pthread_setattr_default_np"), inLibc("pthread_attr_setstacksize")
	if get == 0 || set == 0 || resize == 0 {
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
	callLibc("pthread_attr_destroy", p)
}
