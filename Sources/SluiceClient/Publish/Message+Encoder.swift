import ReactiveCore

extension Message {
  /// A message whose payload is what an encoder makes of a value.
  ///
  /// - Throws: ``ClientError/Code/encodeFailed``.
  public init<Value: Encodable, Coder: TopLevelEncoder>(
    encoding value: Value, encoder: Coder, key: String? = nil, headers: [Header] = []
  ) throws(ClientError) where Coder.Output == [UInt8] {
    let payload: [UInt8]
    do {
      payload = try encoder.encode(value)
    } catch {
      throw ClientError(unencodable: value, error)
    }
    self.init(payload, key: key.map { [UInt8]($0.utf8) }, headers: headers)
  }
}

extension ClientError {
  /// An encoder's refusal, as a failure to publish.
  package init<Value>(unencodable value: Value, _ error: any Error) {
    let reason =
      if case .invalidValue(_, let context) = error as? EncodingError {
        context.debugDescription
      } else {
        "\(error)"
      }
    self.init(.encodeFailed, "a value of type \(Value.self) can't be encoded to be published: \(reason)")
  }
}
