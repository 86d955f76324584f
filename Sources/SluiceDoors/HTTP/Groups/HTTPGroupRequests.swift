import SluiceCommand
import SluiceHTTP
import SluiceIO
import SluiceSession
import SluiceWire

/// `POST /topics/NAME/groups/GROUP/next?count=N&wait=30s`: gets records as a member of a group.
///
/// The answer is 200 with the records, or 204 if none arrived in time. Its field `Sluice-Member` names the member; later requests send it as the parameter
/// `member`. A request without it creates a member. The group is created with, or must match, `deadline` (default 30s), `deliveries`, `dead-letters`,
/// `order=key` and `retry-backoff`; `from` sets its start.
final class HTTPGroupNext: HTTPExchange, @unchecked Sendable {
  // @unchecked: belongs to the connection's loop. The member's answer comes by a job on that loop.
  private unowned let connection: HTTPConnection
  private let member: HTTPGroupMember
  private let number = UInt64.random(in: .min ... .max)
  private var isDone = false

  static let parameters = [
    "count", "dead-letters", "deadline", "deliveries", "from", "member", "order", "retry-backoff", "wait",
  ]
  private static let longestWait = Duration.seconds(300)
  private static let maximumCount: UInt64 = 10_000

  init(_ request: HTTPRequest, by connection: HTTPConnection) throws(HTTPProblem) {
    self.connection = connection
    let count = try request.number("count") ?? 1
    guard (1...Self.maximumCount).contains(count) else {
      throw HTTPProblem(400, "count must be from 1 to \(Self.maximumCount)")
    }
    let wait = try request.duration("wait") ?? .zero
    guard wait <= Self.longestWait else { throw HTTPProblem(400, "wait can be at most \(Self.longestWait)") }
    let isNew = request.parameter("member") == nil
    member = isNew ? try Self.join(request, by: connection) : try request.member(of: connection)
    // A new member needs a moment to join and receive records.
    let patience = isNew ? max(wait, .milliseconds(100)) : max(wait, .milliseconds(10))
    let (member, number, loop) = (member, number, connection.loop)
    let answer: HTTPGroupMember.Answer = { [weak self] result in
      loop.execute { [weak self] in self?.finish(result) }
    }
    member.loop.execute { member.next(number, Int(count), wait: patience, answer) }
  }

  private static func join(
    _ request: HTTPRequest, by connection: HTTPConnection
  ) throws(HTTPProblem) -> HTTPGroupMember {
    var settings = JoinGroup.Settings(acknowledgement: .explicit)
    settings.deadline = try request.milliseconds("deadline") ?? 30_000
    guard settings.deadline > 0 else { throw HTTPProblem(400, "deadline must be from 1ms to 49 days") }
    settings.retryBackoff = try request.backoff()
    settings.deliveries = UInt32(clamping: try request.number("deliveries") ?? 0)
    settings.deadLetters = request.parameter("dead-letters") ?? ""
    switch request.parameter("order") {
    case nil, "any": break
    case "key": settings.order = .byKey
    default: throw HTTPProblem(400, "order can be any or key")
    }
    let key = try request.memberKey(connection)
    let member = HTTPGroupMember(
      key, start: try request.start(), settings, in: connection.members, on: connection.loop)
    guard let accept = connection.broker.accept else {
      throw HTTPProblem.stopping
    }
    guard connection.members.add(member) else { throw HTTPProblem(429, "there are too many members") }
    member.open(connection.link.peer, connection.link.security) { accept($0, connection.loop) }
    return member
  }

  private func finish(_ result: Result<(lines: [UInt8], isMember: Bool), HTTPProblem>) {
    guard !isDone else { return }
    isDone = true
    switch result {
    case .success((let lines, let isMember)):
      let fields = isMember ? [("Sluice-Member", member.token)] : []
      guard !lines.isEmpty else {
        connection.answer(204, "", fields: fields)
        break
      }
      connection.answer(
        200, String(decoding: lines, as: UTF8.self), type: HTTPRecordFormat.lines.contentType, fields: fields)
    case .failure(let problem): connection.refuse(problem)
    }
    connection.endTurn()
  }

  /// The client has disconnected.
  deinit {
    guard !isDone else { return }
    let (member, number) = (member, number)
    member.loop.execute { member.abandon(number) }
  }

  func received(_ action: ClientAction) {}

  func failed(_ problem: HTTPProblem) {
    guard !isDone else { return }
    connection.refuse(problem)
  }
}

/// `POST /topics/NAME/groups/GROUP/ack?member=TOKEN`: settles records of a member; `retry`, `reject` and `extend` likewise, and `leave` ends the member.
/// `retry?after=10s` names a delay.
///
/// The records are the lines of the body, each an offset or a range `5-9`; without a body all that the member has got.
final class HTTPGroupSettling: HTTPExchange, @unchecked Sendable {
  // @unchecked: belongs to the connection's loop. The member's answer comes by a job on that loop.
  private unowned let connection: HTTPConnection
  private var isDone = false

  init(
    _ action: HTTPGroupAction, _ request: HTTPRequest, by connection: HTTPConnection
  ) throws(HTTPProblem) {
    self.connection = connection
    let member = try request.member(of: connection)
    let offsets = try Self.offsets(request.body)
    let delay = try request.milliseconds("after") ?? Settle.byBackoff
    let loop = connection.loop
    let answer: @Sendable (Result<Int, HTTPProblem>) -> Void = { [weak self] result in
      loop.execute { [weak self] in self?.finish(result) }
    }
    member.loop.execute {
      guard let verdict = action.verdict else {
        member.leave()
        return answer(.success(0))
      }
      answer(member.settle(verdict, offsets, delay: delay))
    }
  }

  static func offsets(_ body: [UInt8]) throws(HTTPProblem) -> [ClosedRange<UInt64>]? {
    var ranges: [ClosedRange<UInt64>] = []
    let text = String(decoding: body, as: UTF8.self)
    for line in text.split(whereSeparator: { $0.isWhitespace || $0 == "," }) {
      let parts = line.split(separator: "-", omittingEmptySubsequences: false).map { UInt64($0) }
      guard (1...2).contains(parts.count), let first = parts[0], let last = parts[parts.count - 1],
        first <= last
      else {
        throw HTTPProblem(400, "'\(line.prefix(64))' isn't an offset, nor a range of offsets such as 5-9")
      }
      ranges.append(first...last)
    }
    return ranges.isEmpty ? nil : ranges
  }

  private func finish(_ result: Result<Int, HTTPProblem>) {
    guard !isDone else { return }
    isDone = true
    switch result {
    case .success(let count): connection.answer(200, "{\"records\":\(count)}\n")
    case .failure(let problem): connection.refuse(problem)
    }
    connection.endTurn()
  }

  func received(_ action: ClientAction) {}

  func failed(_ problem: HTTPProblem) {
    guard !isDone else { return }
    connection.refuse(problem)
  }
}

extension HTTPRequest {
  fileprivate func memberKey(_ connection: HTTPConnection) throws(HTTPProblem) -> HTTPGroupMember.Key {
    HTTPGroupMember.Key(
      topic: try topic(), group: try name(3), credentials: try credentials(),
      peerName: connection.link.security?.peerName)
  }

  /// A parameter that is a duration, in whole milliseconds; nil without it.
  fileprivate func milliseconds(_ name: String) throws(HTTPProblem) -> UInt32? {
    guard let duration = try duration(name) else { return nil }
    guard let milliseconds = UInt32(exactly: duration.wholeMilliseconds), milliseconds < .max else {
      throw HTTPProblem(400, "\(name) can be at most 49 days")
    }
    return milliseconds
  }

  /// The parameter `retry-backoff`, such as `1s..5m`.
  fileprivate func backoff() throws(HTTPProblem) -> JoinGroup.Backoff {
    guard let text = parameter("retry-backoff") else { return .none }
    let range: ClosedRange<Duration>
    do throws(ValueError) {
      range = try TimeSpan.range(text)
    } catch {
      throw HTTPProblem(400, "retry-backoff: \(error)")
    }
    guard let first = UInt32(exactly: range.lowerBound.wholeMilliseconds), first > 0,
      let longest = UInt32(exactly: range.upperBound.wholeMilliseconds)
    else { throw HTTPProblem(400, "retry-backoff must be from 1ms to 49 days") }
    return JoinGroup.Backoff(first: first, longest: longest)
  }

  /// The member that the request names.
  fileprivate func member(of connection: HTTPConnection) throws(HTTPProblem) -> HTTPGroupMember {
    guard let token = parameter("member") else {
      throw HTTPProblem(
        400, "say which member: member=TOKEN, as the field Sluice-Member of its first answer names it")
    }
    guard let member = connection.members.member(token, try memberKey(connection)) else {
      throw HTTPGroupMember.gone
    }
    return member
  }
}
