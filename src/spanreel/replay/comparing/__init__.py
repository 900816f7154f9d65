"""What is equal: values, requests and results in the forms in which replay compares them."""
