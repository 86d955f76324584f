import SluiceHTTP
import SluiceWire

/// Where a client of server-sent events goes on, which says the id of the last one that it has had: `Last-Event-ID`.
enum HTTPResumption: Hashable {
  case none
  case behind(HTTPEventID)
  /// It has had the topic's end: that of a life by its epoch; nil for `end` alone, as the id was in earlier versions.
  case ended(of: UInt64?)

  /// - Throws: ``HTTPProblem`` for an id that says nothing of where to go on. To begin elsewhere would lose records, or repeat them.
  init(_ request: HTTPRequest) throws(HTTPProblem) {
    guard let id = request.field("last-event-id"), !id.isEmpty else {
      self = .none
      return
    }
    guard !TopicPattern.hasWildcards(request.path.count > 1 ? request.path[1] : "") else {
      throw HTTPProblem(
        400,
        "Last-Event-ID can't say where each topic of a pattern goes on; read the topics one by one, or leave it out"
      )
    }
    if id == HTTPEventID.end {
      self = .ended(of: nil)
      return
    }
    if let epoch = HTTPEventID.ended(id) {
      self = .ended(of: epoch)
      return
    }
    guard let id = HTTPEventID(id) else {
      throw HTTPProblem(
        400,
        "Last-Event-ID must be the id of an event of this topic: EPOCH-OFFSET, EPOCH-end, an offset, or end")
    }
    self = .behind(id)
  }
}
