// Apple's Combine if it exists, else our implementation, under one name. Nothing is added to it: what Combine doesn't have is in
// CombineExtras. Asking whether a module Combine can be imported would find a program's own module of that name, which imports this one.
#if os(macOS) || os(iOS) || os(tvOS) || os(watchOS) || os(visionOS)
  @_exported import Combine
#else
  @_exported import ReactiveCore
  @_exported import ReactiveFoundation
#endif
