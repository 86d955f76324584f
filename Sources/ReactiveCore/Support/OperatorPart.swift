/// A subscriber or a subscription of an operator, as a debugger, a playground or a log shows it: by the operator's name, and
/// without children unless the type says otherwise.
@usableFromInline
package protocol OperatorPart: CustomStringConvertible, CustomReflectable, CustomPlaygroundDisplayConvertible
{}

extension OperatorPart {
  @usableFromInline
  package var customMirror: Mirror { Mirror(self, children: EmptyCollection()) }

  @usableFromInline
  package var playgroundDescription: Any { description }
}
