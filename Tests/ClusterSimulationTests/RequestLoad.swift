import ReactiveCore
import SluiceClient
import SluiceIO
import SluiceSimulation

/// Clients that send requests, and one that replies.
///
/// The oracle: each request gets its own reply, or an error with the reason, once. A request that failed without responders wasn't published. After the faults
/// all requests get replies.
// @unchecked: used by one thread.
final class RequestLoad: StoryLoad, @unchecked Sendable {
  private static let topic = "quotes"
  private static let clearErrors: Set<String> = ["request-timeout", "no-responders"]

  private unowned let cluster: WholeCluster
  private let askers: [Client]
  private let answerer: Client
  private let flaw: LoadFlaw?
  private var responder: AnyCancellable?
  private var replies: [String: TopicSubject] = [:]
  private var asked = 0
  private var pending: Set<Int> = []
  private var seen: Set<Int> = []
  private var isFinishing = false
  private var isOver = false
  /// How many consecutive requests must get replies after the faults.
  private static let last = 4
  /// How many of these have got replies so far.
  private var answeredLast = 0
  private(set) var notes = LoadNotes("requests")

  init(_ cluster: WholeCluster, _ clients: [Client], flaw: LoadFlaw?) {
    self.cluster = cluster
    self.flaw = flaw
    answerer = cluster.pick(clients)
    askers = clients
    responder = answerer.topic(Self.topic, from: .new, lag: .skip).sink { [unowned self] completion in
      notes.note("the responder has ended: \(completion)")
    } receiveValue: { [unowned self] in
      answer($0)
    }
  }

  private func answer(_ request: TopicRecord) {
    guard let number = Int(request.string),
      let inbox = request.headers.first(where: { $0.name == "reply-to" })?.string,
      let correlation = request.headers.first(where: { $0.name == "correlation-id" })
    else { return notes.note("\(request) isn't a request") }
    seen.insert(number)
    if flaw == .lostAnswer, number % 3 == 1 { return }
    let answered = flaw == .wrongAnswer && number % 3 == 1 ? number - 1 : number
    let subject = replies[inbox] ?? answerer.subject(inbox)
    replies[inbox] = subject
    subject.send(Message("answer \(answered)", headers: [correlation]))
  }

  private func ask() {
    let number = asked
    asked += 1
    pending.insert(number)
    cluster.pick(askers).request(Self.topic, Message("\(number)"), timeout: .seconds(3)) { [self] result in
      answered(number, result)
    }
  }

  private func answered(_ number: Int, _ result: Result<TopicRecord, ClientError>) {
    if isOver { return }
    if pending.remove(number) == nil { notes.note("\(number) was answered twice") }
    switch result {
    case .success(let reply):
      notes.count("answered")
      if reply.string != "answer \(number)" { notes.note("\(number) got '\(reply.string)'") }
      if isFinishing { goOn() }
    case .failure(let error):
      notes.count("failed")
      if !Self.clearErrors.contains(error.code.description) || error.message.isEmpty {
        notes.note("\(number) has failed with \(error.code): \(error)")
      }
      if error.code == .noResponders, seen.contains(number) {
        notes.note("\(number) was published, and has failed with \(error.code)")
      }
      if isFinishing { failedLast() }
    }
  }

  /// Sends one request after another.
  private func goOn() {
    answeredLast += 1
    if pending.isEmpty, answeredLast < Self.last { ask() }
  }

  /// While shards still move, the topic restarts at another node, and records in transit are lost.
  private func failedLast() {
    answeredLast = 0
    if pending.isEmpty { ask() }
  }

  func act() {
    for _ in 0..<cluster.world.random.next(in: 1...3) { ask() }
  }

  func finish() {
    isFinishing = true
    ask()
  }

  func begin() {
    answeredLast = 0
    if pending.isEmpty { ask() }
  }

  func leave() {
    isOver = true
    responder = nil
  }

  var isDone: Bool { pending.isEmpty && answeredLast >= Self.last }

  var open: String { "requests: \(pending.sorted()) of \(asked) open, \(answeredLast) answered at last" }
}
