import SluiceIO

/// The last time that a client was found to know records which its topic has lost.
package struct HistoryBreak: Sendable {
  /// The first offset that the client knew and the topic has lost.
  package var from: UInt64
  /// The offset behind the last one.
  package var before: UInt64
  package var time: MonotonicTime
}
