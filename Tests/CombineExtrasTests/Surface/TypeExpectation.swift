import Testing

/// Expects that an expression has exactly a type when nothing else says which overload is meant.
func expectType<T>(
  of value: T, is type: any Any.Type, sourceLocation: SourceLocation = #_sourceLocation
) {
  #expect(T.self == type, sourceLocation: sourceLocation)
}
