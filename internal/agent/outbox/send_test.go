// SPDX-License-Identifier: Apache-2.0

package outbox

import (
	"errors"
	"strings"
	"testing"

	"connectrpc.com/connect"
)

// A revoked host is told so once, by the hub's answer; after that, only by the handshake. Its status
// says what to do all the same.
func TestRefusedHandshakeIsExplained(t *testing.T) {
	refused := explained(connect.NewError(connect.CodeUnavailable, errors.New("remote error: tls: bad certificate")))
	if text := refused.Error(); !strings.Contains(text, "revoked") || !strings.Contains(text, "enrol the host again") || connect.CodeOf(refused) != connect.CodeUnavailable {
		t.Errorf("%v, code %v", refused, connect.CodeOf(refused))
	}
	if other := errors.New("connection refused"); explained(other) != other {
		t.Errorf("%v became %v", other, explained(other))
	}
}
