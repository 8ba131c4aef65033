package description

import (
	"encoding/hex"
	"encoding/xml"
	"fmt"
	"slices"
	"strings"

	"github.com/macrostep/macrostep/fmi/unit"
)

// Variable returns the variable with this name. The pointer is into d.
func (d *ModelDescription) Variable(name string) (*ScalarVariable, bool) {
	i, ok := d.byName[name]
	if d.byName == nil { // made by hand
		i = slices.IndexFunc(d.Variables, func(v ScalarVariable) bool { return v.Name == name })
		ok = i >= 0
	}
	if !ok {
		return nil, false
	}
	return &d.Variables[i], true
}

// OutputVariables returns the variables of causality output, in document order.
// The pointers are into d.
func (d *ModelDescription) OutputVariables() []*ScalarVariable {
	var list []*ScalarVariable
	for i := range d.Variables {
		if d.Variables[i].Causality == Output {
			list = append(list, &d.Variables[i])
		}
	}
	return list
}

// Enumeration returns the items of an enumeration type, nil if there is no such type.
func (d *ModelDescription) Enumeration(declaredType string) []EnumerationItem {
	if i := slices.IndexFunc(d.Types, func(t SimpleType) bool { return t.Name == declaredType }); i >= 0 {
		return d.Types[i].Items
	}
	return nil
}

// Unit returns the unit with this name. The pointer is into d.
func (d *ModelDescription) Unit(name string) (*unit.Definition, bool) {
	if i := slices.IndexFunc(d.Units, func(u unit.Definition) bool { return u.Name == name }); i >= 0 {
		return &d.Units[i], true
	}
	return nil, false
}

// Stateless reports whether the exporter promises that the outputs are a function
// of the inputs of the same instant, by our vendor annotation:
//
//	<VendorAnnotations><Tool name="macrostep"><stateless/></Tool></VendorAnnotations>
//
// or in FMI 3.0
//
//	<Annotations><Annotation type="macrostep"><stateless/></Annotation></Annotations>
//
// <stateless value="false"/> revokes it.
func (d *ModelDescription) Stateless() bool {
	for _, a := range d.VendorAnnotations {
		if a.Tool != "macrostep" {
			continue
		}
		dec := xml.NewDecoder(strings.NewReader(a.XML))
		for {
			t, err := dec.RawToken()
			if err != nil {
				break
			}
			e, ok := t.(xml.StartElement)
			if !ok || e.Name.Local != "stateless" {
				continue
			}
			value := "true"
			for _, x := range e.Attr {
				if x.Name.Local == "value" {
					value = strings.TrimSpace(x.Value)
				}
			}
			return value == "true" || value == "1"
		}
	}
	return false
}

// Number returns the value reference in modelDescription.xml.
func (r ValueReference) Number() uint32 { return uint32(r) }

// Element returns the row-major index in the array, from 0; 0 for a scalar.
func (r ValueReference) Element() int { return int(r >> 32) }

// Len returns the number of elements.
func (a *Array) Len() int {
	n := 1
	for _, size := range a.Sizes {
		n *= size
	}
	return n
}

// TypeName returns the name of the element for the type in modelDescription.xml.
func (v *ScalarVariable) TypeName() string { return typeName(v.three, v.Type, v.Storage) }

func typeName(three bool, t BaseType, s Storage) string {
	if three {
		return s.String()
	}
	return t.String()
}

// String returns the name of the element in modelDescription.xml of FMI 2.0, or Clock.
func (t BaseType) String() string { return wordOf(baseTypes, t) }

// String returns the name of the element in modelDescription.xml of FMI 3.0.
func (s Storage) String() string {
	if int(s) < len(storages) {
		return storages[s].name
	}
	return fmt.Sprintf("%d?", uint8(s))
}

// StartText returns the start value of a String, or of a Binary in hexadecimal digits.
func (v *ScalarVariable) StartText() string {
	if v.Storage == StoreBinary {
		return hex.EncodeToString([]byte(v.StartString))
	}
	return v.StartString
}

// Range returns the least and the greatest value of an Integer or Enumeration. A variable without a Storage is one of
// FMI 2.0.
func (v *ScalarVariable) Range() (low, high int64) {
	if v.Storage == StoreFloat64 {
		return StoreInt32.Range()
	}
	return v.Storage.Range()
}

// Bounds is like Range, within min and max of the variable.
func (v *ScalarVariable) Bounds() (low, high int64) {
	low, high = v.Range()
	if b := v.Integer.Min; b != nil {
		low = max(low, *b)
	}
	if b := v.Integer.Max; b != nil {
		high = min(high, *b)
	}
	return low, high
}

// Range returns the least and the greatest value of an integer type; those of UInt64 end where int64 does.
func (s Storage) Range() (low, high int64) { return storages[s].min, storages[s].max }

// String returns the word of the attribute in modelDescription.xml.
func (c Causality) String() string { return wordOf(causalityWords, c) }

// String returns the word of the attribute in modelDescription.xml.
func (v Variability) String() string { return wordOf(variabilityWords, v) }

// String returns the word of the attribute in modelDescription.xml, "" for none.
func (k Initial) String() string { return wordOf(initialWords, k) }

// String returns the word in modelDescription.xml.
func (k DependencyKind) String() string { return wordOf(kindWords, k) }

func wordOf[T ~uint8](words []string, k T) string {
	if int(k) < len(words) {
		return words[k]
	}
	return fmt.Sprintf("%d?", uint8(k))
}

// Ticked reports whether there are Clocks that the importer ticks: inputs that are not triggered.
func (d *ModelDescription) Ticked() bool {
	return slices.ContainsFunc(d.Variables, func(v ScalarVariable) bool {
		return v.Clock != nil && v.Clock.Causality == Input && v.Clock.Interval != "triggered"
	})
}
