// SPDX-License-Identifier: Apache-2.0

package policies

import (
	"errors"
	"fmt"
	"sync"

	celgo "github.com/google/cel-go/cel"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/cel/environment"
)

// compiled are the expressions of a policy.
type compiled struct{ validations, messages cel.ConditionEvaluator }

// expression is one of a policy, with the name of the variable that it is of.
type expression struct {
	name, text string
	returns    []*celgo.Type
}

// GetName implements cel.NamedExpressionAccessor.
func (e *expression) GetName() string { return e.name }

// GetExpression implements cel.ExpressionAccessor.
func (e *expression) GetExpression() string { return e.text }

// ReturnTypes implements cel.ExpressionAccessor.
func (e *expression) ReturnTypes() []*celgo.Type { return e.returns }

// baseEnvironment has the functions of the oldest Kubernetes that the hub supports, so that a policy with a newer one does not compile.
var baseEnvironment = sync.OnceValue(func() *environment.EnvSet {
	return environment.MustBaseEnvSet(version.MajorMinor(1, 30))
})

// compile compiles the expressions of a policy, as plugin/policy/validating of k8s.io/apiserver does.
func compile(of *admissionv1.ValidatingAdmissionPolicy) (*compiled, error) {
	compiler, err := cel.NewCompositedCompiler(baseEnvironment())
	if err != nil {
		return nil, err
	}
	has := cel.OptionalVariableDeclarations{HasParams: of.Spec.ParamKind != nil}
	var failed []error
	for _, v := range of.Spec.Variables {
		result := compiler.CompileAndStoreVariable(&expression{v.Name, v.Expression, []*celgo.Type{celgo.AnyType, celgo.DynType}}, has,
			environment.NewExpressions)
		if result.Error != nil {
			failed = append(failed, fmt.Errorf("variable %s: %s", v.Name, result.Error.Detail))
		}
	}
	var conditions, messages []cel.ExpressionAccessor
	for _, v := range of.Spec.Validations {
		conditions = append(conditions, &expression{text: v.Expression, returns: []*celgo.Type{celgo.BoolType}})
		messages = append(messages, &expression{text: v.MessageExpression, returns: []*celgo.Type{celgo.StringType}})
	}
	out := &compiled{
		validations: compiler.CompileCondition(conditions, has, environment.NewExpressions),
		messages:    compiler.CompileCondition(messages, has, environment.NewExpressions),
	}
	failed = append(append(failed, out.validations.CompilationErrors()...), out.messages.CompilationErrors()...)
	return out, errors.Join(failed...)
}
