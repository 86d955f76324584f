import SluiceClient

/// What can be printed of a record.
@safe
struct RecordParts {
  var topic: String
  var offset: UInt64
  /// Milliseconds since 1970.
  var time: Int64
  var key: [UInt8]?
  var headers: [Message.Header]
  /// For which time a group delivers it; nil without a group.
  var deliveries: Int?
  /// Valid as long as the record is.
  var payload: UnsafeRawBufferPointer
}
