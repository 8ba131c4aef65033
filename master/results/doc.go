// Package results reads tables of results, ours and those of other tools, compares
// them and thins them for pictures.
//
//	a, err := results.Read("reference.csv", results.ReadOptions{})
//	b, err := results.Read("other-tool.csv", results.ReadOptions{})
//	c, err := results.Compare(a, b, results.CompareOptions{Usual: 1e-3})
//	for _, v := range c.Variables { … v.NRMSE, v.Max, v.Agrees … }
//
// A [Table] is held in memory by column. [Thinner] makes few points of many in one
// pass, such that a line drawn through them is the line drawn through all, to the
// pixel.
package results
