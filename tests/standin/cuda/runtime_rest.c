/* Functions that programs link with and whose answer nobody looks at: they succeed. */
#define REST(R) \
	R(__cudaRegisterFatBinaryEnd) R(__cudaUnregisterFatBinary) R(__cudaRegisterFunction) R(__cudaRegisterVar) R(__cudaInitModule) \
	R(__cudaRegisterManagedVar) R(cudaEventSynchronize) R(cudaStreamQuery) R(cudaStreamWaitEvent) R(cudaFuncSetAttribute) \
	R(cudaFuncSetCacheConfig) R(cudaGraphAddNode) R(cudaGraphConditionalHandleCreate) R(cudaGraphDebugDotPrint) R(cudaGraphNodeGetDependencies) \
	R(cudaGraphUpload) R(cudaGraphExecUpdate) R(cudaIpcGetEventHandle) R(cudaKernelSetAttributeForDevice) R(cudaLibraryGetKernel) \
	R(cudaLibraryLoadData) R(cudaLibraryUnload) R(cudaProfilerInitialize) R(cudaProfilerStart) R(cudaProfilerStop) R(cudaStreamBeginCaptureToGraph) \
	R(cudaStreamUpdateCaptureDependencies) R(cudaStreamAttachMemAsync) R(cudaDeviceSetLimit) R(cudaDeviceGetLimit) R(cudaDeviceSetCacheConfig) \
	R(cudaSetDeviceFlags) R(cudaGetDeviceFlags) R(cudaMemAdvise) R(cudaMemPrefetchAsync) R(cudaMemcpy2D) R(cudaMemcpy3D) R(cudaMemcpy3DAsync) \
	R(cudaMemcpyToArray) R(cudaMemcpy2DToArray) R(cudaMemcpyToSymbolAsync) R(cudaMemcpyFromSymbol) R(cudaMemset2DAsync) \
	R(cudaDeviceSetGraphMemAttribute) R(cudaMemPoolGetAccess) R(cudaCtxResetPersistingL2Cache) R(cudaUserObjectCreate) \
	R(cudaGraphRetainUserObject) R(cudaDeviceGetByPCIBusId) R(cudaStreamGetFlags) R(cudaDeviceDisablePeerAccess) R(cudaGetFuncBySymbol) \
	R(cudaMemcpyPeer) R(cudaHostGetFlags) R(cudaMemRangeGetAttribute) R(cudaCreateTextureObject) R(cudaDestroyTextureObject) \
	R(cudaLibraryGetGlobal) R(cudaLibraryGetKernelCount) R(cudaLibraryGetManaged) R(cudaLibraryGetUnifiedFunction) \
	R(cudaLibraryLoadFromFile) R(cudaUserObjectRelease)

#define R(name) __attribute__((visibility("default"))) long name(void) { return 0; }
REST(R)
R(cudaGraphNodeGetDependencies_v2)
R(cudaStreamUpdateCaptureDependencies_v2)
R(cudaGraphAddNode_v2)
