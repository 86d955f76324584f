/// A type that makes a whole value of one input, such as the bytes of a JSON text.
public protocol TopLevelDecoder<Input> {
  /// What values are made of.
  associatedtype Input

  /// Decodes a value.
  ///
  /// - Throws: What says where the input isn't as it should be.
  func decode<T: Decodable>(_ type: T.Type, from input: Input) throws -> T
}
