"""Types of the vectors that encoders return and dense stores hold, and of the rows of passages.

`FloatVector` has the shape (dimension,), `FloatMatrix` (n, dimension); both are float32, and an
encoder's rows have unit length, so their dot product is their cosine. `Rows` are int64.
"""

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

FloatVector: TypeAlias = NDArray[np.float32]
FloatMatrix: TypeAlias = NDArray[np.float32]
Rows: TypeAlias = NDArray[np.int64]
