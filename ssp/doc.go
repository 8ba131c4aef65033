// Package ssp reads and writes system structures of the standard SSP (1.0 and 2.0) and
// flattens them to a plain network of FMUs: components, connections from FMU
// output to FMU input, and values to set before the run.
//
//	var findings diag.List
//	p, err := ssp.Open("system.ssp", &findings) // or a folder, or a .ssd
//	if err != nil { ... }
//	defer p.Close()
//	if err := p.CheckSources(&findings); err != nil { ... } // is every FMU there?
//	for _, c := range p.Components() { ... open c.Source ... }
//	network, err := p.Flatten(resolver, &findings)
//
// The package knows nothing of FMUs: what it must know of their variables it
// asks a Resolver. Documents are kept as written (Document); all that follows
// from them is computed by Flatten.
//
// Documents, parameter sets and mappings are written by their Encode, with all that
// they were read with; WriteArchive makes a .ssp, Package.Bind gives parameters
// values that win, Document.Prepare adds what other tools ask for. Package graph
// draws.
//
//	p.Root.System.Elements[0].Base().Description = "edited"
//	data, err := p.Root.Encode()
//	err = ssp.WriteArchive(w, []ssp.File{{Name: "SystemStructure.ssd", Data: data}, {Name: "resources/a.fmu", Path: "a.fmu"}})
//
// What is reported, and how heavily, is data: see rules.go. Errors are what
// applies but cannot be carried out. Names of parameters that match nothing and
// empty entries of mappings are information, an error in strict mode.
//
// # How values and signals change on their way
//
// At each connection the unit is converted first and then the transformation
// applied (ssp 30). A connector of a system without a unit has the unit of what
// feeds it; a unit that is defined nowhere counts as none; an unknown unit is
// not converted. Where the unit of a connector differs from that of the FMU
// variable, the FMU is right about its value, and the connector is a stage of
// conversion of its own (ssp 31).
//
// Values come from parameter bindings, the innermost level first, in document
// order; the last one wins, so the outer level beats the inner and a later
// binding an earlier one (ssp 36). A value bound to a connector of a system
// goes inward along its connections, and there beats what is bound directly
// (ssp 37). Numeric types of version 2.0 count as Real and Integer.
//
// # The annotation of macrostep
//
// Settings of a run stand in an annotation of type com.github.macrostep at the
// DefaultExperiment; a Component may say that it is stateless, which quirks of
// macrostep its FMU needs, separated by blanks, and with isolate="true" that the
// FMU is to run in a process of its own:
//
//	<ssd:Component name="coupling" source="resources/coupling.fmu">
//	  <ssd:Annotations>
//	    <ssc:Annotation type="com.github.macrostep">
//	      <ms:Component xmlns:ms="https://github.com/macrostep/macrostep/ssp/1" stateless="true" quirks="noTerminate"/>
//	    </ssc:Annotation>
//	  </ssd:Annotations>
//	</ssd:Component>
//	...
//	<ssd:DefaultExperiment startTime="0" stopTime="10">
//	  <ssd:Annotations>
//	    <ssc:Annotation type="com.github.macrostep">
//	      <ms:Settings xmlns:ms="https://github.com/macrostep/macrostep/ssp/1"
//	          version="1" algorithm="explicit" stepSize="0.001" tolerance="1e-4">
//	        <ms:Param key="order" value="2"/>
//	        <ms:Stateless component="coupling"/>
//	        <ms:Bond name="axle" energyScale="750" tolerance="1e-5">
//	          <ms:Pair effort="wheel.F_c" flow="chassis.v_c" opposed="true"/>
//	        </ms:Bond>
//	        <ms:Rate component="motor.controller" ratio="10"/>
//	      </ms:Settings>
//	    </ssc:Annotation>
//	  </ssd:Annotations>
//	</ssd:DefaultExperiment>
//
// All attributes but version are optional. stepSize is the macro step in
// seconds. A Rate gives the number of steps that a component makes per macro step, or
// with ratio="1/10" lets it make one step over ten.
// Components are named by their path below the outermost system. The annotation is read strictly:
// an unknown version, attribute or element is an error.
//
// A Bond declares a power bond, an exchange of energy between components, by pairs
// of outputs whose product is a power: the effort (force, torque, pressure,
// voltage), which leads to an input of the component that gives the flow (velocity,
// angular velocity, volume flow, current), and the flow, which leads back. The two
// outputs so tell which side gives what. One Pair makes a scalar bond, several a
// vector; bonds may share an output, as where several forces act on one mass.
// opposed says that effort times flow is power that leaves the component which
// gives the flow, as where its equation of motion takes the force with a minus.
// energyScale in J and tolerance are E0 and r of sadjina (14).
//
// The macro step is also taken from annotations of OSP (baseStepSize),
// OMSimulator (stepSize, fixedStepSize) and OpenMCx (deltaTime), in this order
// after our own (ssp 42–47).
//
// # Not read yet
//
// Signal dictionaries, systems in files of their own (nested .ssp and .ssd),
// parameter files inside FMUs, arrays of version 2.0, and connections into a
// parameter of an FMU are reported as errors where a system uses them.
package ssp
