package edit_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/macrostep/macrostep/fmi/unit"
	"github.com/macrostep/macrostep/ssp"
	"github.com/macrostep/macrostep/ssp/edit"
)

func ExampleEncode() {
	d := &ssp.Document{Name: "car", System: &ssp.System{
		Common: ssp.Common{Name: "car"},
		Elements: []ssp.Element{
			&ssp.Component{Common: ssp.Common{Name: "wheel", Connectors: []ssp.Connector{{Name: "F", Kind: ssp.Output, Type: ssp.Real, Unit: "N"}}},
				Source: "resources/wheel.fmu", HasSource: true},
		},
	}, Units: []unit.Definition{{Name: "N", Base: &unit.Base{Kg: 1, M: 1, S: -2, Factor: 1}}}}
	data, err := edit.Encode(d)
	if err != nil {
		fmt.Println(err)
		return
	}
	_, system, _ := strings.Cut(string(data), `name="car">`)
	fmt.Print(strings.TrimSpace(system))
	// Output:
	// <ssd:System name="car">
	//     <ssd:Elements>
	//       <ssd:Component name="wheel" source="resources/wheel.fmu">
	//         <ssd:Connectors>
	//           <ssd:Connector name="F" kind="output">
	//             <ssc:Real unit="N"/>
	//           </ssd:Connector>
	//         </ssd:Connectors>
	//       </ssd:Component>
	//     </ssd:Elements>
	//   </ssd:System>
	//   <ssd:Units>
	//     <ssc:Unit name="N">
	//       <ssc:BaseUnit kg="1" m="1" s="-2"/>
	//     </ssc:Unit>
	//   </ssd:Units>
	// </ssd:SystemStructureDescription>
}

func ExampleBind() {
	dir, err := os.MkdirTemp("", "example-")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	d := &ssp.Document{Name: "car", System: &ssp.System{Common: ssp.Common{Name: "car"}}}
	data, err := edit.Encode(d)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "SystemStructure.ssd"), data, 0o666)
	}
	if err != nil {
		fmt.Println(err)
		return
	}
	p, err := ssp.Open(dir, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer p.Close()
	files, err := edit.Bind(p, []ssp.ParameterValue{{Name: "wheel.k", Value: ssp.Value{Type: ssp.Real, Real: 2e5}}}, nil)
	for _, f := range files {
		fmt.Println(f.Name)
	}
	fmt.Println(err, bytes.Contains(files[0].Data, []byte(`<ssv:Parameter name="wheel.k">`)))
	// Output:
	// resources/parameters.ssv
	// SystemStructure.ssd
	// <nil> true
}
