"""What a network says about rows and about itself: unusual rows, importance, calibration, early stops."""
