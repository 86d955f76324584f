import SluiceHTTP
import SluiceWire

/// The parameters of a request that reads a topic or a pattern.
struct HTTPReadingTerms {
  let name: String
  let isPattern: Bool
  /// Whether the records are requests that the client replies to. They begin with the next one unless `from` is set, the topic is created if it doesn't
  /// exist, and each object contains the address for its reply.
  let areRequests: Bool
  let format: HTTPRecordFormat
  let endsWhenLive: Bool
  let start: Subscribe.Start
  let filter: RecordFilter
  /// The number of records to send; nil for no limit.
  let count: UInt64?
  /// The durable cursor that it moves; empty for none.
  let cursor: String
  /// The number of records that may be requested and not yet written to the client; nil for no limit.
  let window: UInt64?
  /// The longest time without output; nil for no limit.
  let interval: Duration?

  static let parameters = [
    "count", "cursor", "demand", "from", "header", "keepalive", "key", "key-base64", "key-prefix", "until",
  ]

  init(_ request: HTTPRequest, areRequests: Bool, _ options: DoorOptions) throws(HTTPProblem) {
    name = request.path[1]
    isPattern = TopicPattern.hasWildcards(name)
    self.areRequests = areRequests
    format =
      request.accepts("text/event-stream")
      ? (isPattern ? .eventsOfMany : .events)
      : request.accepts("application/octet-stream") && !areRequests ? .raw : .lines
    switch request.parameter("until") {
    case nil: endsWhenLive = false
    case "live": endsWhenLive = true
    default: throw HTTPProblem(400, "until can be live")
    }
    start = try request.start(otherwise: areRequests ? .new : .replay)
    count = try request.count()
    filter = try request.filter()
    cursor = request.parameter("cursor") ?? ""
    guard cursor.isEmpty || !isPattern else { throw HTTPProblem(400, "a cursor belongs to one topic") }
    window = try request.number("demand")
    guard window ?? 1 > 0 else { throw HTTPProblem(400, "demand must be a number from 1 on") }
    interval = try HTTPStreamKeepalive.interval(request, format, options)
    do throws(WireError) {
      if isPattern { _ = try TopicPattern(name) } else { try TopicName.validate(name) }
    } catch {
      throw HTTPProblem(error)
    }
  }
}
