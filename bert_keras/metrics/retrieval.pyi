from numpy.typing import ArrayLike

from bert_keras._types import Array

def cosine_similarity_matrix(queries: ArrayLike, documents: ArrayLike) -> Array: ...
