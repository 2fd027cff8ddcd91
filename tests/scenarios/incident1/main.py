"""Incident 1: after training, inference loads the model a second time, and 3,111,649,280 bytes don't fit any more."""
import npu
import qwen

npu.set_device(0)
params_dict = qwen.load_checkpoint()
npu.phase("t1", params_dict=params_dict)
training_model = qwen.Model(params_dict)
npu.phase("t2", params_dict=params_dict)
training_model.train()
final_params = training_model.to_numpy()
npu.phase("t3", params_dict=params_dict, final_params=final_params)
inference_model = qwen.Model(final_params)
npu.phase("t4", params_dict=params_dict, final_params=final_params)
answer = inference_model.generate()
npu.phase("t5", params_dict=params_dict, final_params=final_params)
