# The stand-in CUDA libraries, in $(B)/standin: driver, NVML and three majors of the runtime, from C alone; what else PyTorch's CUDA
# build wants of NVIDIA, from the undefined symbols of the wheel in VENV_GPU, where it is installed.
STANDIN_CUDA := $(addprefix $(B)/standin/,libcuda.so.1 libcudart.so.11.0 libcudart.so.12 libcudart.so.13 libnvidia-ml.so.1)
STANDIN_OF    = $(patsubst %,$(B)/tests/standin/cuda/%.o,$(1))
# Bsymbolic: a preloaded library that has functions of the same names must not get in between.
STANDIN_FLAGS = -std=gnu11 -O1 -g $(WARN) -Wno-unused-parameter $(CPPFLAGS) -fPIC -fvisibility=hidden -fno-builtin -MMD -MP
STANDIN_LINK  = $(SAY)$(CC) -shared -o $@ $(filter %.o,$^) -Wl,-soname,$(@F) -Wl,-Bsymbolic -lpthread -ldl
TORCH_GPU     = $(wildcard $(VENV_GPU)/lib/python3*/site-packages/torch/lib)

STANDIN_OBJECTS := $(call STANDIN_OF,shared memory driver driver_memory driver_virtual driver_rest entries nvml runtime_rest maths)
$(STANDIN_OBJECTS): $(B)/%.o: %.c
	@mkdir -p $(@D)
	$(SAY)$(CC) $(STANDIN_FLAGS) -c -o $@ $<
$(B)/tests/standin/cuda/cudart%.o: tests/standin/cuda/runtime.c
	@mkdir -p $(@D)
	$(SAY)$(CC) $(STANDIN_FLAGS) -DMAJOR=$(basename $*) -c -o $@ $<

$(B)/standin/libcuda.so.1: $(call STANDIN_OF,shared memory driver driver_memory driver_virtual driver_rest entries)
	@mkdir -p $(@D)
	$(STANDIN_LINK)
$(B)/standin/libnvidia-ml.so.1: $(call STANDIN_OF,shared nvml)
	@mkdir -p $(@D)
	$(STANDIN_LINK)
$(B)/standin/libcudart.so.%: $(call STANDIN_OF,runtime_rest) $(B)/tests/standin/cuda/cudart%.o
	@mkdir -p $(@D) && echo '$(@F) { global: *; };' >$(B)/tests/standin/cuda/$(@F).map
	$(STANDIN_LINK) -Wl,--version-script=$(B)/tests/standin/cuda/$(@F).map -Wl,-rpath,'$$ORIGIN'

# Torch's libraries look in site-packages/nvidia/cu13/lib before anywhere else.
TORCH_LOOKS   = $(TORCH_GPU)/../../nvidia/cu13/lib
standin: $(STANDIN_CUDA) $(if $(TORCH_GPU),$(B)/standin/.torch)
	$(if $(TORCH_GPU),@mkdir -p $(dir $(TORCH_LOOKS)) && ln -sfn $(call FULL,$(B)/standin) $(TORCH_LOOKS))
$(B)/standin/.torch: tests/standin/cuda/stubs.py $(call STANDIN_OF,maths) $(wildcard $(TORCH_GPU)/libtorch_cuda.so) | $(STANDIN_CUDA)
	CC='$(CC)' tests/standin/cuda/stubs.py $(TORCH_GPU) $(B)/standin $(call STANDIN_OF,maths)
	touch $@

# The compiler compares the declarations with NVIDIA's. CUDA_HOME, CUDA12_HOME: toolkits or pip's nvidia-cuda-runtime.
standin-abi:
	for c in driver driver_memory driver_virtual; do \
		$(CC) -std=gnu11 -w -DVENDOR $(CPPFLAGS) -I$(CUDA_HOME)/include -fsyntax-only tests/standin/cuda/$$c.c || exit 1; done
	$(CC) -std=gnu11 -w -DVENDOR -DMAJOR=13 $(CPPFLAGS) -I$(CUDA_HOME)/include -fsyntax-only tests/standin/cuda/runtime.c
	$(if $(CUDA12_HOME),$(CC) -std=gnu11 -w -DVENDOR -DMAJOR=12 $(CPPFLAGS) -I$(CUDA12_HOME)/include -I$(CUDA_HOME)/include \
		-fsyntax-only tests/standin/cuda/runtime.c)

-include $(STANDIN_OBJECTS:.o=.d) $(wildcard $(B)/tests/standin/cuda/cudart*.d)
.SECONDARY: $(B)/tests/standin/cuda/cudart11.0.o $(B)/tests/standin/cuda/cudart12.o $(B)/tests/standin/cuda/cudart13.o
.PHONY: standin standin-abi
