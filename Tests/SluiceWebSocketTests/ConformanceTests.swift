import SluiceWebSocket
import TestSupport
import Testing

/// RFC 6455, by the cases of the Autobahn test suite's groups 1 to 7, without the suite itself; ``AutobahnTests`` run the suite.
@Suite("WebSocket conformance")
struct ConformanceTests {
  @Test("a server that echoes does what the case expects", arguments: ConformanceCase.all)
  func play(_ example: ConformanceCase) {
    var server = EchoServer()
    for chunk in example.chunks { server.receive(chunk) }
    #expect(server.seen == example.sees)
  }

  @Test("every case has a number of its own")
  func numbers() {
    let numbers = ConformanceCase.all.map(\.number)
    #expect(Set(numbers).count == numbers.count)
    #expect(numbers.count > 220)
    for group in 1...7 { #expect(numbers.contains { $0.hasPrefix("\(group).") }) }
  }
}
