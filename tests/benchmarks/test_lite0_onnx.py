"""The ONNX file that sorting is compared with is the same network."""

import numpy as np
import pytest

from protorect.embedding.sources import load_embedder

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")


def test_the_onnx_file_gives_the_same_features(tmp_path):
    from benchmarks.lite0_onnx import write_lite0

    write_lite0(tmp_path / "lite0.onnx")
    pictures = np.random.default_rng(0).integers(0, 256, (2, 224, 224, 3), dtype=np.uint8)
    library = load_embedder(precision="float32")(pictures)
    options = f"mean={127 / 255},std={128 / 255}"
    onnx = load_embedder(f"onnx:{tmp_path / 'lite0.onnx'}:{options}")(pictures)
    np.testing.assert_allclose(onnx, library, rtol=1e-3, atol=1e-3)
