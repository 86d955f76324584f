import Glibc
import SluiceWire
import TestSupport
import Testing

/// The programs of `Sources/Examples` as processes: they run, exit, and print the output that their comments promise.
@Suite(.onItsOwnThread)
struct ExampleTests {
  private let broker: BrokerProcess

  init() throws {
    broker = try BrokerProcess()
  }

  private func run(
    _ example: String, _ arguments: String..., input: ChildProcess.Input = .nothing
  ) throws -> [String] {
    let process = try ChildProcess(BuiltProduct.path(example), arguments, input: input)
    #expect(try process.waitForExit() == .code(0), "\(process.standardError.text)")
    return process.standardOutput.text.split(separator: "\n").map(String.init)
  }

  @Test func theClockRunsOnlyWhileSomebodyListens() throws {
    let lines = try run("Ticker", broker.address)
    #expect(
      lines.prefix(6) == [
        "a subscriber is there: the clock runs", "tick 1", "tick 2", "tick 3", "tick 4", "tick 5",
      ])
    #expect(lines.contains("no subscriber is left: the clock stands"))
  }

  @Test func jobsAreDoneOnceAndOneIsPutAside() throws {
    let lines = try run("WorkQueue", broker.address)
    let done = lines.filter { $0.contains(" did job ") }.compactMap { line in
      line.split(separator: " ").dropFirst(3).first.flatMap { Int($0.filter(\.isNumber)) }
    }
    #expect(done.sorted() == (1...20).filter { $0 != 7 })
    #expect(lines.count { $0.contains("failed at job 7") } == 3)
    #expect(lines.last?.contains("; 1 put aside in jobs.dead") == true)
    #expect(try broker.show("jobs.dead").summary.nextOffset == 1)
  }

  @Test func whatIsSaidIsHeardAlsoByThoseWhoComeLater() throws {
    let first = try run(
      "Chat", "kitchen", "ada", broker.address, input: .bytes(Array("hello\nis there tea?\n".utf8)))
    #expect(first == ["ada: hello", "ada: is there tea?"])
    let second = try run("Chat", "kitchen", "bob", broker.address, input: .bytes(Array("there is\n".utf8)))
    #expect(second == ["ada: hello", "ada: is there tea?", "bob: there is"])
    #expect(try run("Chat") == ["usage: Chat ROOM NAME [SERVER]"])
  }

  @Test func theSourceIsNeverFurtherAheadThanTheBuffer() throws {
    let lines = try run("BackPressure", broker.address)
    let ahead = lines.compactMap { line in
      line.contains(" ahead") ? line.split(separator: " ").dropLast().last.flatMap { Int($0) } : nil
    }
    #expect(ahead.count == 80)
    // The buffer of 50, the subscriber's demand, and records in transit.
    #expect(ahead.allSatisfy { (0...120).contains($0) }, "\(ahead)")
    #expect(lines.last == "the source has ended, and so has the topic: 4000 records")
  }

  @Test(arguments: [["Ticker"], ["WorkQueue"], ["BackPressure"], ["Chat", "kitchen", "ada"]])
  func withoutABrokerTheyFailWithASentence(command: [String]) throws {
    let address = broker.address
    broker.process.signal(SIGTERM)
    try broker.process.waitForExit()
    let process = try ChildProcess(BuiltProduct.path(command[0]), command.dropFirst() + [address])
    #expect(try process.waitForExit() == .code(1), "\(process.messages)")
    #expect(process.standardOutput.text.contains("is the broker running"), "\(process.messages)")
    #expect(process.standardError.text == "")
  }

  /// Topics left by the first run don't break the second one.
  @Test(arguments: ["Ticker", "WorkQueue", "BackPressure"])
  func theyRunTwice(example: String) throws {
    _ = try run(example, broker.address)
    _ = try run(example, broker.address)
  }
}
