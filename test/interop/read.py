# Prints the variables of a MAT as JSON: hexadecimal numbers by name.
import json
import sys

import scipy.io

m = scipy.io.loadmat(sys.argv[1])
names = ["".join(column).rstrip() for column in zip(*m["name"])]
print(json.dumps({name: [float(v).hex() for v in row] for name, row in zip(names, m["data_2"])}))
