// Apple's Combine where it exists, ours elsewhere, under one name. Nothing is added to it: what Combine doesn't have is in CombineExtras.
#if canImport(Combine)
  @_exported import Combine
#else
  @_exported import ReactiveCore
  @_exported import ReactiveFoundation
#endif
