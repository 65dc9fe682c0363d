#!/usr/bin/env python3
"""Makes the reference files of layers, losses and linear algebra from PyTorch in f64.

  python3 tests/golden/make_layers.py            writes the files
  python3 tests/golden/make_layers.py --check    compares with the stored files (1e-9)

Needs python3-torch and python3-numpy. README.md tells what the files hold.
"""

import sys
import warnings

sys.dont_write_bytecode = True
warnings.filterwarnings("ignore", "reduction: .mean. divides")    # kl_div: known, wanted

import cases_function
import cases_layer
import cases_sequence
import cases_spatial
from golden_file import finish

finish([
    cases_function.activation(),
    cases_sequence.attention(),
    cases_spatial.conv(),
    cases_function.linalg(),
    cases_sequence.linear(),
    cases_function.loss(),
    cases_spatial.norm(),
    cases_spatial.pool(),
    cases_sequence.recurrent(),
    cases_spatial.resize(),
    cases_layer.layers(),
    cases_layer.losses(),
], sys.argv[1:])
