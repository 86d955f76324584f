// Apple's Combine where it exists, ours elsewhere, under one name.
#if canImport(Combine)
  @_exported import Combine
#else
  @_exported import ReactiveCore
  @_exported import ReactiveFoundation
#endif
