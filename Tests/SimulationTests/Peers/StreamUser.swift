import SluiceWire

/// A user of streams of a peer's connection: a producer, a subscriber or a requester.
protocol StreamUser: AnyObject {
  /// The connection is open; streams may be opened on it.
  func connected(_ connection: SimulatedPeer)

  /// Handles a frame on `stream`.
  ///
  /// - Returns: true if the stream has ended and its number is free.
  func received(_ header: FrameHeader, _ body: UnsafeRawBufferPointer, on stream: UInt32) throws(WireError)
    -> Bool

  /// The connection has ended, and with it all streams. `inOrder`: the broker closed it after its last frame.
  func disconnected(inOrder: Bool)

  /// The peer's outbox has room again.
  func roomAppeared()

  /// No more faults follow: finish pending work, and drop other plans.
  func settle()

  /// The pending work; nil if there is none.
  var unsettled: String? { get }
}

extension StreamUser {
  func roomAppeared() {}
}
