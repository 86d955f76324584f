import Testing

@testable import SluiceNATS

@Suite("The functions that a NATS client calls")
struct CallbackTests {
  @Test("observers hear of a change, in the order in which they came, and of nothing else")
  func observers() {
    var heard: [String] = []
    var callbacks = NATSCallbacks()
    let first = callbacks.observe { heard.append("first \($0)") }
    let second = callbacks.observe { heard.append("second \($0)") }
    func tell(_ isConnected: Bool) {
      for number in callbacks.observers(toTell: isConnected) { callbacks.observer(number)?(isConnected) }
    }
    tell(false)
    #expect(heard == [])
    tell(true)
    tell(true)
    #expect(heard == ["first true", "second true"])
    _ = callbacks.removeObserver(first)
    tell(false)
    #expect(heard == ["first true", "second true", "second false"])
    #expect(callbacks.removeObservers().keys.sorted() == [second])
    tell(true)
    #expect(heard.count == 3)
  }

  @Test("a request that fails tells its function, whether it waits for one answer or for many")
  func failures() {
    var codes: [NATSError.Code] = []
    func note(_ result: Result<NATSMessageView, NATSError>) {
      if case .failure(let error) = result { codes.append(error.code) }
    }
    let one = NATSCallbacks.Answer.one { note($0) }
    let many = NATSCallbacks.Answer.many {
      note($0)
      return .more
    }
    #expect(!one.isMany && many.isMany)
    one.fail(NATSError(.timeout, ""))
    many.fail(NATSError(.closed, ""))
    #expect(codes == [.timeout, .closed])
  }
}
