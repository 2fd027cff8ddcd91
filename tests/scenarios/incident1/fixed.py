"""Incident 1 as it was fixed: what was copied is given back before the next copy is made."""
import gc

import npu
import qwen

npu.set_device(0)
params_dict = qwen.load_checkpoint()
npu.phase("t1", params_dict=params_dict)
training_model = qwen.Model(params_dict)
npu.phase("t2", params_dict=params_dict)
del params_dict
gc.collect()
training_model.train()
final_params = training_model.to_numpy()
npu.phase("t3", final_params=final_params)
del training_model
gc.collect()
inference_model = qwen.Model(final_params)
npu.phase("t4", final_params=final_params)
del final_params
gc.collect()
answer = inference_model.generate()
npu.phase("t5")
