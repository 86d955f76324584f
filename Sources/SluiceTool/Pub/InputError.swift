import SluiceCommand

/// Why input can't be read on, in words.
struct InputError: Error, Equatable {
  var description: String

  /// - Parameter position: which record of the input it is, from 1.
  static func tooLong(_ what: String, limit: Int) -> InputError {
    InputError(
      description: "\(what) is longer than the broker takes, which is \(ByteSize.exact(UInt64(limit))); "
        + "split it, or start sluiced with a larger --max-record")
  }
}
