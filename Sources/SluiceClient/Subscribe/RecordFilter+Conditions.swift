@_exported import struct SluiceWire.RecordFilter

import SluiceWire

/// A filter for records, as ``Client/topic(_:settings:from:where:cursor:lag:prefetch:)`` takes it:
///
/// ```swift
/// client.topic("orders", where: .key(hasPrefix: "eu.") && .header("kind", equals: "new"))
/// ```
///
/// The broker compares key and headers, and sends the matching records; the other ones use no demand.
extension RecordFilter {
  /// Every record.
  public static var all: RecordFilter { RecordFilter() }

  /// Records that have a key, empty or not.
  public static var hasKey: RecordFilter { RecordFilter([Condition(.key, .exists)]) }

  /// Records with this key, as UTF-8.
  public static func key(equals text: String) -> RecordFilter { key(equals: Array(text.utf8)) }

  /// Records with this key.
  public static func key(equals bytes: [UInt8]) -> RecordFilter {
    RecordFilter([Condition(.key, .equals(bytes))])
  }

  /// Records whose key begins with this, as UTF-8.
  public static func key(hasPrefix text: String) -> RecordFilter { key(hasPrefix: Array(text.utf8)) }

  /// Records whose key begins with this.
  public static func key(hasPrefix bytes: [UInt8]) -> RecordFilter {
    RecordFilter([Condition(.key, .hasPrefix(bytes))])
  }

  /// Records that have a header of that name.
  public static func hasHeader(_ name: String) -> RecordFilter {
    RecordFilter([Condition(.header(name), .exists)])
  }

  /// Records that have a header of that name with this value, as UTF-8.
  public static func header(_ name: String, equals text: String) -> RecordFilter {
    header(name, equals: Array(text.utf8))
  }

  /// Records that have a header of that name with this value.
  public static func header(_ name: String, equals bytes: [UInt8]) -> RecordFilter {
    RecordFilter([Condition(.header(name), .equals(bytes))])
  }

  /// Records that have a header of that name whose value begins with this, as UTF-8.
  public static func header(_ name: String, hasPrefix text: String) -> RecordFilter {
    header(name, hasPrefix: Array(text.utf8))
  }

  /// Records that have a header of that name whose value begins with this.
  public static func header(_ name: String, hasPrefix bytes: [UInt8]) -> RecordFilter {
    RecordFilter([Condition(.header(name), .hasPrefix(bytes))])
  }

  /// Records that match both filters.
  public static func && (left: RecordFilter, right: RecordFilter) -> RecordFilter {
    RecordFilter(left.conditions + right.conditions)
  }

  /// Checks the broker's limits. Subscriptions with an invalid filter fail with the same error.
  ///
  /// - Throws: ``ClientError/Code/limitReached``.
  public func validate() throws(ClientError) {
    if conditions.count > Self.maximumConditions {
      throw ClientError(
        .limitReached, "the filter has \(conditions.count) conditions; the limit is \(Self.maximumConditions)"
      )
    }
    for (index, condition) in conditions.enumerated() {
      let length = max(condition.subject.name.utf8.count, condition.test.value.count)
      if length > Self.maximumLength {
        throw ClientError(
          .limitReached,
          "condition \(index + 1) of the filter has a text of \(length) bytes; the limit is \(Self.maximumLength)"
        )
      }
    }
  }
}
