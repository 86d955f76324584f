import SluiceClient
import Testing

@Suite struct TraceContextTests {
  private let parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

  @Test func aValidHeaderIsReadAndWrittenAsItWas() throws {
    let context = try #require(TraceContext(traceparent: parent, tracestate: "a=1,b=2"))
    #expect(context.traceID == "4bf92f3577b34da6a3ce929d0e0e4736" && context.spanID == "00f067aa0ba902b7")
    #expect(context.flags == 1 && context.state == "a=1,b=2" && context.traceparent == parent)
    // A later version may have additional fields.
    #expect(TraceContext(traceparent: "01" + parent.dropFirst(2) + "-what")?.traceparent == parent)
  }

  @Test(arguments: [
    "", "00", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7",
    "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
    "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more",
    "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
    "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
    "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
    "00-4bf92f3577b34da6a3ce929d0e0e473-00f067aa0ba902b7-01",
    "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-0g",
    "0-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
    "00-+bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
  ])
  func whatIsntValidIsNoTrace(_ text: String) {
    #expect(TraceContext(traceparent: text) == nil)
    #expect(Message("x", headers: [.init("traceparent", text)]).trace == nil)
  }

  @Test func newTracesAndSpansAreOthers() throws {
    let (one, other) = (TraceContext(), TraceContext())
    #expect(one.traceID != other.traceID && TraceContext(traceparent: one.traceparent) == one)
    let child = one.child()
    #expect(child.traceID == one.traceID && child.spanID != one.spanID && child.flags == one.flags)
  }

  @Test func aMessageCarriesOneTraceBesideItsOtherHeaders() throws {
    var message = Message("x", key: "k", headers: [.init("a", "b")])
    #expect(message.trace == nil)
    let context = try #require(TraceContext(traceparent: parent, tracestate: "v=1"))
    message.trace = context
    message.trace = context.child()
    #expect(message.headers.map(\.name) == ["a", "traceparent", "tracestate"])
    #expect(message.trace?.traceID == context.traceID && message.trace?.state == "v=1")
    message.trace = nil
    #expect(message.headers.map(\.name) == ["a"])
    // Two parents contradict each other.
    message.headers = [.init("traceparent", parent), .init("traceparent", parent)]
    #expect(message.trace == nil)
  }
}
