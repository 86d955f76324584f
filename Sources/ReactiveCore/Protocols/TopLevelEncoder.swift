/// A type that turns a whole value into one output, such as the bytes of a JSON text.
public protocol TopLevelEncoder<Output> {
  /// What values are turned into.
  associatedtype Output

  /// Encodes a value.
  ///
  /// - Throws: What says why the value can't be encoded.
  func encode<T: Encodable>(_ value: T) throws -> Output
}
