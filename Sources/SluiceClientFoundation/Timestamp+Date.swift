public import Foundation
public import SluiceClient

extension Date {
  public init(_ time: Timestamp) {
    self.init(timeIntervalSince1970: Double(time.millisecondsSince1970) / 1_000)
  }
}

extension Timestamp {
  /// The date in whole milliseconds, as near as possible; a date that is too far away is the nearest one.
  public init(_ date: Date) {
    let milliseconds = (date.timeIntervalSince1970 * 1_000).rounded()
    self.init(
      millisecondsSince1970: Int64(exactly: milliseconds) ?? (milliseconds < 0 ? Int64.min : Int64.max))
  }
}
