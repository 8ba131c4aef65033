package record

type Salvaged struct {
	Rows   int
	Newest float64
}

func Salvage(find func(name string) []byte) (Salvaged, error) { return Salvaged{}, nil }
