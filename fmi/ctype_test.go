package fmi

import (
	"math"
	"testing"
	"unsafe"

	"github.com/macrostep/macrostep/fmi/description"
)

// Each type in C takes the values of its range and no others, and gives them back.
func TestWidths(t *testing.T) {
	var memory uint64
	p := uintptr(unsafe.Pointer(&memory))
	for storage, limit := range map[description.Storage][2]int64{
		description.StoreInt8: {-128, 127}, description.StoreUInt8: {0, 255},
		description.StoreInt16: {-32768, 32767}, description.StoreUInt16: {0, 65535},
		description.StoreInt32: {math.MinInt32, math.MaxInt32}, description.StoreUInt32: {0, math.MaxUint32},
		description.StoreInt64: {math.MinInt64, math.MaxInt64}, description.StoreUInt64: {0, math.MaxInt64},
		description.StoreEnum: {math.MinInt64, math.MaxInt64},
	} {
		if low, high := storage.Range(); low != limit[0] || high != limit[1] {
			t.Errorf("%s: limits %d and %d", storage, low, high)
		}
		for _, n := range limit {
			memory = 0xa5a5a5a5a5a5a5a5
			stored := storeValue(storage, p, value{integer: n})
			if v, ok := loadValue(storage, p); !stored || !ok || v.integer != n {
				t.Errorf("%s: %d becomes %d", storage, n, v.integer)
			}
		}
		if limit[0] > math.MinInt64 && storeValue(storage, p, value{integer: limit[0] - 1}) {
			t.Errorf("%s takes %d", storage, limit[0]-1)
		}
		if limit[1] < math.MaxInt64 && storeValue(storage, p, value{integer: limit[1] + 1}) {
			t.Errorf("%s takes %d", storage, limit[1]+1)
		}
	}
	memory = math.MaxUint64
	if _, ok := loadValue(description.StoreUInt64, p); ok {
		t.Error("2^64-1 is taken for an int64")
	}
	memory = 2
	if v, _ := loadValue(description.StoreBool, p); v.integer != 1 {
		t.Errorf("the Boolean 2 is %d", v.integer)
	}
	if storeValue(description.StoreFloat32, p, value{real: 1e39}) || !storeValue(description.StoreFloat32, p, value{real: 0.1}) {
		t.Error("Float32 takes 1e39, or not 0.1")
	}
	if v, _ := loadValue(description.StoreFloat32, p); v.real != float64(float32(0.1)) {
		t.Errorf("0.1 is %v", v.real)
	}
}
