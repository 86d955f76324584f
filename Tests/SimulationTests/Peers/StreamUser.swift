import SluiceWire

/// A user of streams of a peer's connection: a producer, a subscriber, a request.
protocol StreamUser: AnyObject {
  /// The connection is open: new streams may be opened on it.
  func connected(_ connection: SimulatedPeer)

  /// A frame came for `stream`.
  ///
  /// - Returns: true when the stream is over, and its number free.
  func received(_ header: FrameHeader, _ body: UnsafeRawBufferPointer, on stream: UInt32) throws(WireError)
    -> Bool

  /// The connection is gone, and all streams with it. `inOrder`: the broker has closed it after all it had to say.
  func disconnected(inOrder: Bool)

  /// There is room again in what the peer has to send.
  func roomAppeared()

  /// From here on nothing goes wrong any more: do what is left to do, and let go of plans.
  func settle()

  /// Everything that was to happen has happened; what is missing otherwise.
  var unsettled: String? { get }
}

extension StreamUser {
  func roomAppeared() {}
}
